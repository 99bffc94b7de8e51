"""What changed between two evaluations, as a run shows it, with the months Dagster materialised."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import dagster as dg

from rag_assets.keys import CHUNKS, NOTE_EMBEDDINGS, NOTES, embeddings_key
from rag_resources.core.attribution import Flip, MonthBlame, blame_months
from rag_resources.core.comparison import Comparison
from rag_resources.core.messages import METRIC_WORDS, Message
from rag_resources.core.tables import markdown_table
from rag_resources.evaluation.comparison import EvaluationComparison
from rag_resources.evaluation.summary import VERDICT_WORDS, p_value_in_words, value_in_words

SHOWN_FLIPS = 50
SHOWN_NEWCOMERS = 3
_PAGE = 500
_WORK = frozenset({"inserted", "updated", "migrated", "vectors"})


def attribution_metadata(
    instance: dg.DagsterInstance, found: EvaluationComparison
) -> dict[str, Any]:
    """Return a comparison as metadata: numbers, what changed, what flipped, which months."""
    materialized = materialized_months(instance, found)
    months = {note: name.month for note, name in found.notes.items()}
    blamed = blame_months(found.flips, months, materialized.keys())
    return {
        "comparison": dg.MetadataValue.md(_metrics(found.comparison)),
        **(
            {"comparison_by_passage": dg.MetadataValue.md(_metrics(found.passages))}
            if found.passages
            else {}
        ),
        "changes": dg.MetadataValue.md(_changes(found)),
        "months": dg.MetadataValue.md(_months(blamed, materialized)),
        "flips": dg.MetadataValue.md(_flips(found)),
        "lost": len(found.comparison.lost),
        "gained": len(found.comparison.gained),
    }


def materialized_months(
    instance: dg.DagsterInstance, found: EvaluationComparison
) -> dict[str, list[str]]:
    """Return which assets were worked on in each month between two evaluations, from the event log.

    A materialisation that says it did nothing is none.

    Returns:
        Names of assets by month, as `YYYY-MM`, the newest month first.
    """
    first, last = sorted((found.before.created_at, found.after.created_at))
    models = {found.before.model, found.after.model}
    keys = [NOTES, NOTE_EMBEDDINGS, CHUNKS, *map(embeddings_key, sorted(models))]
    worked: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        for month in sorted(set(_worked_on(instance, key, first, last)), reverse=True):
            worked[month].append(key.to_user_string())
    return dict(sorted(worked.items(), reverse=True))


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


def _metrics(comparison: Comparison) -> str:
    rows = (
        (
            METRIC_WORDS[item.metric],
            f"{item.before:.3f}",
            f"{item.after:.3f}",
            f"{item.difference:+.3f}",
            f"{item.interval.low:+.3f} … {item.interval.high:+.3f}",
            p_value_in_words(item.adjusted_p_value),
            VERDICT_WORDS[item.verdict],
        )
        for item in comparison.metrics
    )
    return markdown_table(Message.TABLE_COMPARISON, rows)


def _changes(found: EvaluationComparison) -> str:
    if not found.changes:
        return Message.COMPARE_NO_CHANGES
    rows = (
        (item.field, value_in_words(item.before), value_in_words(item.after))
        for item in found.changes
    )
    return markdown_table(Message.TABLE_CHANGES, rows)


def _months(blamed: Sequence[MonthBlame], materialized: Mapping[str, Sequence[str]]) -> str:
    if not materialized:
        return Message.MONTHS_NONE
    explained = {item.month: item for item in blamed}
    others = [month for month in materialized if month not in explained]
    items = (*explained.values(), *(MonthBlame(month, 0, 0) for month in others))
    rows = (
        (item.month, ", ".join(materialized[item.month]), item.own, item.displaced)
        for item in items
    )
    return markdown_table(Message.TABLE_BLAME, rows)


def _flips(found: EvaluationComparison) -> str:
    if not found.flips:
        return Message.FLIPS_NONE
    rows = (_flip(found, flip) for flip in found.flips[:SHOWN_FLIPS])
    return markdown_table(Message.TABLE_FLIPS, rows)


def _flip(found: EvaluationComparison, flip: Flip) -> tuple[str, ...]:
    ranks = f"{flip.before.rank or '–'} → {flip.after.rank or '–'}"
    own = _names(found, flip.after.relevant)
    instead = _names(found, flip.newcomers[:SHOWN_NEWCOMERS])
    return flip.after.query, ranks, own, instead or "–"


def _names(found: EvaluationComparison, note_ids: Sequence[UUID]) -> str:
    return ", ".join(
        found.notes[note].name if note in found.notes else str(note) for note in note_ids
    )
