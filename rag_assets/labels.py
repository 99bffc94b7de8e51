"""Formats metadata for Dagster's pages: names in the reader's language, numbers with few decimals.

All metadata of assets, checks and jobs pass through `labelled`; the names are in
`rag_resources.languages.labels`.
"""

import re
from collections.abc import Mapping
from typing import Any

import dagster as dg

from rag_resources.languages.labels import label, stage_label

_COARSE = re.compile(r"(^|_)(ms|seconds?|minutes?|hours|percent|per_minute)(_|$)")
"""Words in the names of times, speeds and percentages; other fractions are metrics or shares."""


def labelled(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata under the names in its reader's language, in the same order.

    Times, speeds and percentages keep two decimals, metrics and shares four. An empty list is a
    dash.
    """
    return {label(field): rounded(field, _or_dash(value)) for field, value in fields.items()}


def stage_times(stages: Mapping[str, float]) -> dict[str, float]:
    """Return how long each stage took, in milliseconds with two decimals, under its name."""
    return {label(f"stage_{stage_label(stage)}"): round(ms, 2) for stage, ms in stages.items()}


def _or_dash(value: Any) -> Any:
    is_empty = isinstance(value, dg.MarkdownMetadataValue) and not value.md_str
    return "–" if is_empty else value


def rounded(field: str, value: Any) -> Any:
    """Return the value of a field; times keep two decimals, metrics and shares four."""
    if not isinstance(value, float):
        return value
    return round(value, 2 if _COARSE.search(field) else 4)
