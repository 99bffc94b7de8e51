"""Checks of documents: losses of new readings, errors, and passages verified in their files."""

from collections.abc import Sequence

import dagster as dg

from rag_assets.keys import CHUNKS, DOCUMENT_PAGES
from rag_assets.labels import labelled
from rag_assets.runs.partitions import run_window
from rag_resources.languages.messages import _
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
        description=_(
            "{verified} of {passages} passages are at their place in the file. {examples}"
        ).format(verified=verified.verified, passages=verified.passages, examples=examples),
    )
