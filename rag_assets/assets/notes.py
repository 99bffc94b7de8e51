"""Notes from their source, and whole-note vectors, which find a note before it is chunked."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from time import perf_counter

import dagster as dg

from rag_assets.automation import when_months_change
from rag_assets.keys import DATABASE_WRITES, DOCUMENT_PAGES, NOTES, OWNERS, model_pool
from rag_assets.launchpad import SourceConfig
from rag_assets.metadata import labelled
from rag_assets.partitions import batches, full_window, monthly, outside_windows, span
from rag_assets.runs.failures import told_as_failure
from rag_assets.runs.months import (
    MonthEvents,
    MonthOutcome,
    MonthProgress,
    indexed_month,
    materialize_months,
)
from rag_resources.application.indexing import Indexing
from rag_resources.application.notes import Notes
from rag_resources.core.types import TimeWindow
from rag_resources.ingestion.content_source import ContentSource
from rag_resources.ingestion.ingest import IngestReport
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.settings import SAMPLE_SOURCE, Settings
from rag_resources.store.notes import Upsert


def chosen_source(
    context: dg.AssetExecutionContext, config: SourceConfig, notes: Notes
) -> ContentSource:
    """Return the source that the run reads; a choice worth a notice is logged.

    Raises:
        MixedSourcesError: The source would join notes of others.
    """
    source = notes.source_to_read(sample=config.sample, mixes=config.mixes)
    if source.notice:
        context.log.warning(source.notice)
    return source


def build_notes_asset(settings: Settings) -> dg.AssetsDefinition:
    """Build the asset `notes`."""

    @dg.asset(
        partitions_def=monthly(settings),
        backfill_policy=batches,
        pool=DATABASE_WRITES,
        deps=[DOCUMENT_PAGES],
        group_name="ingestion",
        owners=OWNERS,
        kinds={"python", "postgres"},
        description=_(
            "The notes of the source (NOTES_SOURCE), by month of creation. What has not changed "
            "is untouched; what cannot be read is named and counted."
        ),
    )
    def notes(
        context: dg.AssetExecutionContext, config: SourceConfig, rag: RagResource
    ) -> MonthEvents:
        """Upsert the notes of the run's months, and the sections of its documents."""
        started = perf_counter()
        with told_as_failure():
            source = chosen_source(context, config, rag.notes)
            followed = (
                rag.notes.mirror(source.notes, source=source.name)
                if source.notes and rag.settings.mirror and source.name != SAMPLE_SOURCE
                else None
            )
            report = _ingest(context, rag, source, followed.copies if followed else None)
        told = [*(followed.sentences() if followed else ()), *report.sentences()]
        for sentence in told:
            context.log.warning(sentence)
        seconds_per_note = (perf_counter() - started) / max(1, report.written)
        for rejected in report.rejected:
            context.log.warning("%s: %s", rejected.location, rejected.reason)

        def month(window: TimeWindow) -> MonthOutcome:
            counts = report.by_month.get(f"{window.start:%Y-%m}", Counter())
            # One reading serves all months, so each is credited with its share of the time.
            return MonthOutcome(
                {
                    **{outcome.value: counts[outcome] for outcome in Upsert},
                    **_of_documents(context, rag, window),
                },
                {"notes": counts.total()},
                seconds=counts.total() * seconds_per_note,
            )

        latest = max(context.partition_keys)
        context.add_asset_metadata(
            labelled(
                {
                    "rejected": report.rejected_count,
                    "rejected_records": dg.MetadataValue.md(
                        "\n".join(
                            f"- `{item.location}`: {item.reason}" for item in report.rejected[:50]
                        )
                    ),
                    "undated": report.undated_count,
                    **{
                        f"left_out_{kind.removesuffix('Chars')}": count
                        for kind, count in report.text_left_out.items()
                    },
                    "absent": len(followed.missing) if followed else report.absent_count,
                    "absent_notes": "\n".join(map(str, told)) or "–",
                    "left_out": report.left_out_count,
                    "left_out_notes": dg.MetadataValue.md(
                        "\n".join(
                            f"- `{item.external_id}`: {item.reason}"
                            for item in report.left_out[:50]
                        )
                    ),
                }
            ),
            partition_key=latest,
        )
        yield from materialize_months(context, month)

    return notes


def _of_documents(
    context: dg.AssetExecutionContext, rag: RagResource, window: TimeWindow
) -> dict[str, float]:
    """Write the sections of the documents that were read; return counts and quality to plot."""
    applied = rag.documents.apply(window)
    for title in applied.merged:
        context.log.info(
            _(
                "“{title}” has the same text as another document: it is now another address of it."
            ).format(title=title)
        )
    if not applied.documents:
        return _quality(rag, window)
    return {
        **_quality(rag, window),
        "documents": applied.documents,
        **{f"sections_{outcome.value}": count for outcome, count in applied.notes.items()},
        "sections_deleted": applied.deleted_notes,
    }


def _quality(rag: RagResource, window: TimeWindow) -> dict[str, float]:
    """Return the distribution of the quality of a month's pages, which the UI plots by month."""
    quality = rag.documents.quality(window)
    if quality is None:
        return {}
    low, middle, high = quality.quantiles
    return {
        "page_quality_mean": quality.mean,
        "page_quality_p10": low,
        "page_quality_p50": middle,
        "page_quality_p90": high,
        "pages_of_low_quality": quality.low,
    }


def _ingest(
    context: dg.AssetExecutionContext,
    rag: RagResource,
    source: ContentSource,
    copies: Mapping[str, str] | None,
) -> IngestReport:
    """Read the source once: notes of the run's months and notes outside every partition."""
    if source.notes is None:
        return IngestReport()
    wanted, everything = span(context.partition_keys), full_window(rag.settings)

    def keep(created_at: datetime) -> bool:
        inside = everything.start <= created_at < everything.end
        return not inside or wanted.start <= created_at < wanted.end

    return rag.notes.ingest(
        rag.notes.read(source.notes),
        source=source.name,
        root=source.notes,
        copies=copies,
        keep=keep,
    )


def build_note_embeddings_asset(settings: Settings) -> dg.AssetsDefinition:
    """Build the asset `note_embeddings`."""

    @dg.asset(
        partitions_def=monthly(settings),
        backfill_policy=batches,
        pool=model_pool(settings.note_embedding_model),
        deps=[NOTES],
        group_name="ingestion",
        owners=OWNERS,
        kinds={"python", "postgres"},
        tags={"model": settings.note_embedding_model},
        automation_condition=when_months_change(),
        description=_(
            "A vector for each whole note: it finds a note before it is chunked, and is the "
            "baseline of comparisons."
        ),
    )
    def note_embeddings(context: dg.AssetExecutionContext, rag: RagResource) -> MonthEvents:
        """Embed whole notes, including those outside every partition."""
        indexing = rag.indexing
        with told_as_failure():
            indexing.register_note_model()

        def month(window: TimeWindow) -> MonthOutcome:
            progress = MonthProgress(
                context.log, window, lambda: indexing.notes_left_to_embed(window)
            )
            adopted = _adopt(context, indexing, window)
            report = indexing.embed_notes(window, progress=progress)
            return indexed_month(
                indexing,
                window,
                report,
                {
                    "vectors": report.vectors,
                    "embedded": report.embedded,
                    "reused": report.reused,
                    **adopted,
                },
                {"vectors": report.vectors},
            )

        def finish() -> None:
            for outside in outside_windows(rag.settings):
                _adopt(context, indexing, outside)
                indexing.embed_notes(outside)

        yield from materialize_months(context, month, finish)

    return note_embeddings


def _adopt(
    context: dg.AssetExecutionContext, indexing: Indexing, window: TimeWindow
) -> dict[str, int]:
    """Adopt the old application's vectors if the settings say so, and return the counts."""
    report = indexing.adopt_vectors(window)
    if report is None:
        return {}
    if report.unusable:
        notes = ", ".join(f"{item.note_id} ({item.dimension})" for item in report.unusable[:5])
        context.log.warning(
            _(
                "{month}: {count} vectors of “notes.embedding” are unusable, because of their "
                "dimension (in brackets) or because they are zero, and those notes are embedded "
                "again. The first ones: {notes}"
            ).format(month=f"{window.start:%Y-%m}", count=len(report.unusable), notes=notes)
        )
    return {"adopted": report.adopted, "unusable": len(report.unusable)}
