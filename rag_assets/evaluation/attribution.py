"""What changed between two evaluations, as run metadata, with the months materialised between."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from rag_assets.keys import CHUNKS, NOTE_EMBEDDINGS, NOTES, embeddings_key
from rag_resources.core.attribution import MonthBlame, blame_months
from rag_resources.core.messages import Message
from rag_resources.core.tables import markdown_table
from rag_resources.evaluation.comparison import EvaluationComparison
from rag_resources.evaluation.comparison_tables import changes_table, flips_table, metrics_table

SHOWN_FLIPS = 50
_PAGE = 500
_WORK = frozenset({"inserted", "updated", "migrated", "vectors"})


def attribution_metadata(
    instance: dg.DagsterInstance, found: EvaluationComparison
) -> dict[str, Any]:
    """Return a comparison as metadata: numbers, changes, flips, materialised months."""
    materialized = materialized_months(instance, found)
    months = {note: name.month for note, name in found.notes.items()}
    blamed = blame_months(found.flips, months, materialized.keys())
    changes, flips = changes_table(found), flips_table(found, shown=SHOWN_FLIPS)
    return {
        "comparison": dg.MetadataValue.md(metrics_table(found.comparison).markdown()),
        **(
            {"comparison_by_passage": dg.MetadataValue.md(metrics_table(found.passages).markdown())}
            if found.passages
            else {}
        ),
        "changes": dg.MetadataValue.md(
            changes.markdown() if changes.rows else Message.COMPARE_NO_CHANGES
        ),
        "months": dg.MetadataValue.md(_months(blamed, materialized)),
        "flips": dg.MetadataValue.md(flips.markdown() if flips.rows else Message.FLIPS_NONE),
        "lost": len(found.comparison.lost),
        "gained": len(found.comparison.gained),
    }


def materialized_months(
    instance: dg.DagsterInstance, found: EvaluationComparison
) -> dict[str, list[str]]:
    """Return the assets worked on in each month between two evaluations, from the event log.

    Materialisations that report no work are left out.

    Returns:
        Names of assets by month, as `YYYY-MM`, newest month first.
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
