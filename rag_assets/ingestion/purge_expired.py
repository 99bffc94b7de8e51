"""The job that deletes expired notes and documents."""

import dagster as dg

from rag_assets.labels import labelled
from rag_assets.runs.failures import told_as_failure
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource


@dg.op(
    description=_(
        "Deletes the notes and uploaded documents that expired more than EXPIRED_GRACE_HOURS "
        "hours ago, with their chunks and vectors; they were no longer found."
    )
)
def purge_expired_notes(context: dg.OpExecutionContext, rag: RagResource) -> None:
    """Delete the notes and documents whose grace period after expiry is over."""
    with told_as_failure():
        documents = rag.documents.purge_expired()
        report = rag.notes.purge_expired()
    context.add_output_metadata(
        labelled(
            {
                "deleted": report.deleted,
                "left": report.left,
                "documents": documents,
                "grace_hours": rag.notes.grace_hours,
            }
        )
    )


@dg.job(
    name="purge_expired",
    description=_(
        "Deletes the notes and uploaded documents that expired more than EXPIRED_GRACE_HOURS "
        "hours ago, with their chunks and vectors; they were no longer found."
    ),
)
def purge_expired_job() -> None:
    """Delete expired notes and documents."""
    purge_expired_notes()
