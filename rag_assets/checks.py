"""Checks of documents, notes, chunks, vectors, the graph and the golden questions.

Those that let something serve are in `rag_assets.gates`.
"""

from collections.abc import Sequence
from dataclasses import asdict

import dagster as dg

from rag_assets.gates import NOTHING_DELETED, record_quality
from rag_assets.keys import (
    CHUNKS,
    DOCUMENT_PAGES,
    GOLDEN_DATASET,
    NOTES,
    embeddings_key,
    graph_key,
)
from rag_assets.metadata import labelled
from rag_assets.partitions import full_window, run_window
from rag_resources.core.graph_version import GraphPart
from rag_resources.core.migration_gate import MIN_COSINE
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.tables import markdown_table
from rag_resources.core.types import TimeWindow
from rag_resources.ingestion.ingest import outside_in_words
from rag_resources.languages.messages import _, joined, ngettext
from rag_resources.resources import RagResource
from rag_resources.store.document_list import status_word

EXAMPLES = 10


MOST_ERRORS = 0.01
"""Largest share of documents, and of pages, that may lack text because of errors."""


@dg.asset_check(
    asset=DOCUMENT_PAGES,
    blocking=True,
    description=_("No new reading loses more words or passages than allowed."),
)
def extraction_loss(
    context: dg.AssetCheckExecutionContext, rag: RagResource
) -> dg.AssetCheckResult:
    """Stop a run whose new reading loses too much text; later runs only get a warning.

    Such a reading replaces nothing until a person accepts it, so the next run can write everything
    else.
    """
    held = rag.documents.held(run_window(context.run.tags, rag.settings))
    began = context.instance.get_run_stats(context.run.run_id).start_time or 0.0
    is_new = any(reading.read_at.timestamp() >= began for reading in held)
    shown = "; ".join(
        f"{reading.title}: "
        + _(
            "the new reading loses {words:.1%} of the words and {passages:.1%} of the passages"
        ).format(words=reading.diff.lost_words, passages=reading.diff.lost_citations)
        for reading in held[:EXAMPLES]
    )
    return dg.AssetCheckResult(
        passed=not held,
        severity=dg.AssetCheckSeverity.ERROR if is_new else dg.AssetCheckSeverity.WARN,
        metadata=labelled({"held": len(held)}),
        description=_(
            "{count} documents wait for a decision; their pages have not changed: {documents}. "
            "Decide with “rag document review”."
        ).format(count=len(held), documents=shown)
        if held
        else _("No reading waits for a decision."),
    )


@dg.asset_check(
    asset=DOCUMENT_PAGES, description=_("Fewer than 1 % of the documents and of the pages fail.")
)
def document_errors(
    context: dg.AssetCheckExecutionContext, rag: RagResource
) -> dg.AssetCheckResult:
    """Name the stage in which more than one in a hundred documents or pages failed."""
    counted = rag.documents.count(run_window(context.run.tags, rag.settings))
    failed = counted.statuses.get("failed", 0)
    shares = {
        "documents": failed / counted.documents if counted.documents else 0.0,
        "pages": counted.failed_pages / counted.pages if counted.pages else 0.0,
    }
    stages = counted.stages_over(MOST_ERRORS)
    return dg.AssetCheckResult(
        passed=not stages and all(share <= MOST_ERRORS for share in shares.values()),
        severity=dg.AssetCheckSeverity.WARN,
        metadata=labelled(
            {
                "documents": counted.documents,
                "failed_documents": failed,
                "failed_pages": counted.failed_pages,
                "failed_documents_share": shares["documents"],
                "failed_pages_share": shares["pages"],
                **{
                    f"failed_{what}_{status_word(stage)}": count
                    for stage, counts in counted.failures.items()
                    for what, count in zip(("documents", "pages"), counts, strict=True)
                },
            }
        ),
        description=_(
            "Documents not read: {documents:.1%}. Pages with an error: {pages:.1%}."
        ).format(**shares)
        + _named(stages),
    )


def _named(stages: Sequence[str]) -> str:
    words = ", ".join(map(status_word, stages))
    return _(" More than 1 % fail in: {stages}.").format(stages=words) if stages else ""


@dg.asset_check(
    asset=CHUNKS,
    description=_("The passages of the documents are in the file, at the place that they name."),
)
def citations_verified(
    context: dg.AssetCheckExecutionContext, rag: RagResource
) -> dg.AssetCheckResult:
    """Look up the passages of the run's months in their files again."""
    window = run_window(context.run.tags, rag.settings)
    if not rag.documents.count(window).documents:
        return dg.AssetCheckResult(passed=True, metadata=labelled({"passages": 0}))
    verified = rag.documents.verify_window(window)
    examples = "; ".join(
        f"{each.document}: «{each.content[:80]}»" for each in verified.unverified[:EXAMPLES]
    )
    return dg.AssetCheckResult(
        passed=verified.is_enough,
        metadata=labelled(
            {
                "passages": verified.passages,
                "verified": verified.verified,
                "verified_share": verified.share,
            }
        ),
        description=f"{verified.in_words} {examples}".strip(),
    )


EXAMPLES = 10


@dg.asset_check(asset=NOTES, description=_("All records of the source could be read."))
def rejected_records(rag: RagResource) -> dg.AssetCheckResult:
    """Name the records that the last reading of each source could not read."""
    found, count = rag.notes.rejections(limit=EXAMPLES)
    if not count:
        return dg.AssetCheckResult(passed=True, metadata=labelled({"rejected": 0}))
    rows = ((item.location, item.reason) for item in found)
    return dg.AssetCheckResult(
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=labelled(
            {
                "rejected": count,
                "rejected_records": dg.MetadataValue.md(
                    markdown_table((_("Where"), _("Reason")), rows)
                ),
            }
        ),
        description=_(
            "Records that the last reading could not read: {count}. Correct each in its file; the "
            "next run picks it up."
        ).format(count=count),
    )


@dg.asset_check(asset=NOTES, description=_("No note is outside the monthly partitions."))
def notes_inside_partitions(rag: RagResource) -> dg.AssetCheckResult:
    """Name the notes outside all partitions, and the setting that would include them."""
    inside = full_window(rag.settings)
    outside = rag.notes.outside(inside, limit=EXAMPLES)
    if outside is None:
        return dg.AssetCheckResult(passed=True, metadata=labelled({"outside": 0}))
    return dg.AssetCheckResult(
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=labelled({"outside": outside.count}),
        description=outside_in_words(outside),
    )


@dg.asset_check(asset=NOTES, description=_("Most notes of each month know their date."))
def notes_dated(rag: RagResource) -> dg.AssetCheckResult:
    """Name the months that most of their notes are in only because of the time of their file."""
    months = rag.notes.file_dated_months()
    named = ", ".join(f"{own.month} ({own.file_dated}/{own.notes})" for own in months[:EXAMPLES])
    return dg.AssetCheckResult(
        passed=not months,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=labelled({"undated": sum(own.file_dated for own in months)}),
        description=_(
            "Months in which most notes only have the date of their file: {months}. Write dates "
            "into the notes, their names or folders: “rag init FOLDER” tells how dates are found."
        ).format(months=named)
        if months
        else None,
    )


@dg.asset_check(
    asset=CHUNKS,
    blocking=True,
    description=_("The chunks are numbered from 0 to N−1, lie inside their note and cover it."),
)
def chunk_integrity(
    context: dg.AssetCheckExecutionContext, rag: RagResource
) -> dg.AssetCheckResult:
    """Check the bounds, sequence and coverage of the chunks in the run's months."""
    checked, broken = rag.indexing.broken_notes(run_window(context.run.tags, rag.settings))
    examples = ", ".join(f"{note.note_id} ({note.problem})" for note in broken[:EXAMPLES])
    return dg.AssetCheckResult(
        passed=not broken,
        metadata=labelled({"notes": checked, "broken": len(broken)}),
        description=_("Some notes have incorrect chunks: {examples}").format(examples=examples)
        if broken
        else ngettext("{notes} note checked.", "{notes} notes checked.", checked).format(
            notes=checked
        ),
    )


def build_vectors_checks(model: str) -> list[dg.AssetChecksDefinition]:
    """Build the checks that a model's vectors are complete, and come from the model."""

    @dg.asset_check(
        asset=embeddings_key(model),
        name="embeddings_complete",
        blocking=True,
        description=_(
            "Each chunk has its vectors, up to date and of the model's dimension; windows lie "
            "inside their chunk."
        ),
    )
    def complete(context: dg.AssetCheckExecutionContext, rag: RagResource) -> dg.AssetCheckResult:
        window = run_window(context.run.tags, rag.settings)
        # Vectors of whole notes are those of note_embeddings.
        gaps = [own for own in rag.indexing.gaps(model, window) if own.kind != VectorKind.NOTE]
        total = sum(own.total for own in gaps)
        told = joined(
            "; ",
            [
                _(
                    "{kind}: {owners} chunks or notes, {missing} without a vector, {stale} vectors "
                    "of another text, {wrong_dimension} of another dimension"
                ).format(**asdict(own))
                for own in gaps
            ],
        )
        return dg.AssetCheckResult(
            passed=total == 0,
            metadata=labelled({name: sum(getattr(own, name) for own in gaps) for name in _COUNTED}),
            description=joined(
                " ",
                (
                    told,
                    _(
                        "If another run or “rag run” was indexing at the same time, nothing is "
                        "missing: repeat the check when it has ended. Otherwise materialise the "
                        "asset again."
                    ),
                ),
            )
            if total
            else told,
        )

    @dg.asset_check(
        asset=embeddings_key(model),
        name="batch_equals_single",
        blocking=True,
        description=_(
            "The vectors are the model's: a sample of the batch, computed again, gives the same "
            "ones, and all have length 1. Otherwise the batch is rejected, and those that are not "
            "the model's are deleted, to be made again."
        ),
    )
    def verified(context: dg.AssetCheckExecutionContext, rag: RagResource) -> dg.AssetCheckResult:
        vectors = rag.indexing.verify_vectors(model, run_window(context.run.tags, rag.settings))
        told = vectors.faults
        if told:
            record_quality(context, rag, model)
            told = [*told, _discard(rag, model, run_window(context.run.tags, rag.settings))]
        elif vectors.lowest_cosine is None:
            return dg.AssetCheckResult(passed=True, description=_("There is nothing to do."))
        return dg.AssetCheckResult(
            passed=not vectors.faults,
            metadata=labelled(asdict(vectors)),
            description=joined("; ", told)
            or _(
                "The lowest cosine between the stored vector and the one computed now is "
                "{cosine:.5f} (minimum: {minimum})."
            ).format(cosine=vectors.lowest_cosine, minimum=MIN_COSINE),
        )

    return [complete, verified]


def _discard(rag: RagResource, model: str, window: TimeWindow) -> str:
    """Delete the vectors that a check refused; say what was done, and what to do next."""
    discarded = rag.indexing.discard_refused(model, window)
    if discarded is None:
        return NOTHING_DELETED
    return _(
        "deleted: {vectors} vectors of {notes} notes. Repeat the check retrieval_quality and "
        "materialise the asset again, which makes them anew"
    ).format(vectors=discarded.vectors, notes=discarded.notes)


_COUNTED = ("vectors", "missing", "stale", "wrong_dimension")


_COMPLETE = {
    GraphPart.MENTIONS: _(
        "All chunked notes were read for mentions, and no mention leaves its chunk."
    ),
    GraphPart.STATEMENTS: _("All chunked notes were read for causes, and none leaves its chunk."),
}


def build_completeness_check(part: GraphPart) -> dg.AssetChecksDefinition:
    """Build the check that a part has read every chunked note, and stays inside the chunks."""

    @dg.asset_check(
        asset=graph_key(part),
        name=f"{part.value}_complete",
        blocking=True,
        description=_COMPLETE[part],
    )
    def complete(context: dg.AssetCheckExecutionContext, rag: RagResource) -> dg.AssetCheckResult:
        gaps = rag.graph.gaps(part, run_window(context.run.tags, rag.settings))
        return dg.AssetCheckResult(
            passed=gaps.total == 0,
            metadata=labelled(asdict(gaps)),
            description=_(
                "{waiting} of {notes} notes not read; {out_of_bounds} of {found} findings outside "
                "their chunk."
            ).format(**asdict(gaps)),
        )

    return complete


@dg.asset_check(
    asset=GOLDEN_DATASET,
    blocking=True,
    description=_("Each question is valid and not repeated, and its relevant notes exist."),
)
def golden_valid(rag: RagResource) -> dg.AssetCheckResult:
    """Check that there are questions and that their notes exist; the table ensures the rest."""
    count, broken = len(rag.golden.entries()), rag.golden.broken()
    if not count:
        # Only a warning: notes can be indexed and searched without questions.
        return dg.AssetCheckResult(
            passed=False,
            severity=dg.AssetCheckSeverity.WARN,
            description=_(
                "The set of questions is empty, so there is nothing to evaluate. Import one with "
                "“rag golden import FILE”."
            ),
        )
    examples = "\n".join(entry.finding for entry in broken[:EXAMPLES])
    return dg.AssetCheckResult(
        passed=not broken,
        metadata=labelled({"questions": count, "broken": len(broken)}),
        description=_(
            "Questions with notes that are gone: {count}. Nothing is evaluated or promoted until "
            "they are mended.\n{examples}"
        ).format(count=len(broken), examples=examples)
        if broken
        else ngettext("{count} valid question.", "{count} valid questions.", count).format(
            count=count
        ),
    )


@dg.asset_check(
    asset=GOLDEN_DATASET,
    description=_(
        "The questions still measure what they should: their notes are there and were not edited "
        "and the mix of categories is that of the evaluation of what serves."
    ),
)
def golden_drift(rag: RagResource) -> dg.AssetCheckResult:
    """Name the questions that need review; this check blocks nothing."""
    drift = rag.golden.drift()
    findings = drift.findings
    return dg.AssetCheckResult(
        passed=not findings,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=labelled(
            {
                "notes_gone": len(drift.gone),
                "notes_edited": len(drift.edited),
                "category_mix_distance": drift.mix.distance if drift.mix else 0.0,
                "findings": dg.MetadataValue.md(
                    "\n".join(f"- {line}" for line in findings[:EXAMPLES]) or "–"
                ),
            }
        ),
        description=drift.summary,
    )
