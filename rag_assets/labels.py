"""What Dagster's pages show of metadata: names in words of their reader, numbers of few decimals.

Everything that an asset, a check or a job tells of itself passes through `labelled`; the names are
in `rag_resources.languages.labels`.
"""

import re
from collections.abc import Mapping
from typing import Any

from rag_resources.languages.labels import label, stage_label

_COARSE = re.compile(r"(^|_)(ms|seconds?|minutes?|hours|percent|per_minute)(_|$)")
"""Fields of times, speeds and percentages; other fractions are metrics, shares and the like."""


def labelled(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata under the names of its reader; the order stays.

    Times, speeds and percentages keep two decimals, metrics and shares four.
    """
    return {label(field): _rounded(field, value) for field, value in fields.items()}


def stage_times(stages: Mapping[str, float]) -> dict[str, float]:
    """Return how long each stage took, in milliseconds with two decimals, under its name."""
    return {label(f"stage_{stage_label(stage)}"): round(ms, 2) for stage, ms in stages.items()}


def _rounded(field: str, value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return round(value, 2 if _COARSE.search(field) else 4)
