"""The changes between two evaluations, and the causes of lost questions, as run metadata."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

import dagster as dg

from rag_assets.keys import CHUNKS, NOTE_EMBEDDINGS, NOTES, embeddings_key
from rag_resources.application.evaluations import Evaluations
from rag_resources.core.messages import Message
from rag_resources.evaluation.comparison import EvaluationComparison
from rag_resources.evaluation.comparison_tables import (
    answers_table,
    attribution_table,
    changes_table,
    flips_table,
    metrics_table,
    shifts_in_words,
    shifts_table,
)
from rag_resources.languages.labels import every_label

SHOWN_FLIPS = 50
_PAGE = 500
_WORK = frozenset(
    name for field in ("inserted", "updated", "migrated", "vectors") for name in every_label(field)
)
"""Metadata fields that show work on a month, under all names that materialisations may use."""


def attribution_metadata(
    instance: dg.DagsterInstance,
    evaluations: Evaluations,
    found: EvaluationComparison,
    log: Callable[[str], None],
) -> dict[str, Any]:
    """Return a comparison as metadata: numbers, changes, flips, causes of the lost questions."""
    causes = evaluations.attribute(
        found.before,
        found.after,
        worked=worked_months(instance, found),
        say=log,
    )
    changes, flips = changes_table(found), flips_table(found, shown=SHOWN_FLIPS)
    return {
        "comparison": dg.MetadataValue.md(metrics_table(found.comparison).markdown()),
        **(
            {"comparison_by_passage": dg.MetadataValue.md(metrics_table(found.passages).markdown())}
            if found.passages
            else {}
        ),
        **(
            {"comparison_of_answers": dg.MetadataValue.md(metrics_table(found.answers).markdown())}
            if found.answers
            else {}
        ),
        "changes": dg.MetadataValue.md(
            changes.markdown() if changes.rows else Message.COMPARE_NO_CHANGES
        ),
        "causes": dg.MetadataValue.md(
            attribution_table(causes).markdown() if causes.lost else Message.ATTRIBUTION_NOTHING
        ),
        "flips": dg.MetadataValue.md(flips.markdown() if flips.rows else Message.FLIPS_NONE),
        "shifts": dg.MetadataValue.md(
            "\n\n".join((shifts_in_words(found), shifts_table(found, shown=SHOWN_FLIPS).markdown()))
        ),
        "lost": sum(flip.is_lost for flip in found.flips),
        "gained": sum(not flip.is_lost for flip in found.flips),
    }


def answers_metadata(
    instance: dg.DagsterInstance,
    evaluations: Evaluations,
    found: EvaluationComparison,
    log: Callable[[str], None],
) -> dict[str, Any]:
    """Return the answers whose first citation changed, with the causes."""
    changed = evaluations.attribute_answers(
        found.before, found.after, worked=worked_months(instance, found), say=log
    )
    table = answers_table(changed, shown=SHOWN_FLIPS).markdown()
    return {
        "changed_answers": len(changed.changed),
        "answer_causes": dg.MetadataValue.md(
            table if changed.changed else Message.ANSWERS_UNCHANGED
        ),
    }


def worked_months(instance: dg.DagsterInstance, found: EvaluationComparison) -> frozenset[str]:
    """Return the months whose notes, chunks or vectors were made between two evaluations.

    They are read from the event log, as `YYYY-MM`. Materialisations that report no work are left
    out.
    """
    first, last = sorted((found.before.created_at, found.after.created_at))
    models = {found.before.model, found.after.model}
    keys = [NOTES, NOTE_EMBEDDINGS, CHUNKS, *map(embeddings_key, sorted(models))]
    return frozenset(month for key in keys for month in _worked_on(instance, key, first, last))


def _worked_on(
    instance: dg.DagsterInstance, key: dg.AssetKey, first: datetime, last: datetime
) -> Iterator[str]:
    cursor: str | None = None
    while True:
        page = instance.fetch_materializations(
            dg.AssetRecordsFilter(
                asset_key=key,
                after_timestamp=first.timestamp(),
                before_timestamp=last.timestamp(),
            ),
            limit=_PAGE,
            cursor=cursor,
        )
        for record in page.records:
            event = record.asset_materialization
            if event and event.partition and _did_something(event.metadata):
                yield event.partition[:7]
        if not page.has_more:
            return
        cursor = page.cursor


def _did_something(metadata: Mapping[str, dg.MetadataValue[Any]]) -> bool:
    told = [metadata[name].value for name in _WORK & metadata.keys()]
    return not told or any(told)
