"""The job that archives the questions of old evaluations."""

import dagster as dg

from rag_assets.labels import labelled
from rag_assets.runs.failures import told_as_failure
from rag_resources.core.messages import Message
from rag_resources.resources import RagResource


@dg.op(description=Message.JOB_ARCHIVE)
def archive_old_questions(context: dg.OpExecutionContext, rag: RagResource) -> None:
    """Move the questions of old evaluations to files; the averages stay in the database."""
    with told_as_failure():
        archived = rag.evaluations.archive()
    if archived is None:
        context.log.warning(Message.ARCHIVE_WITHOUT_FILES)
        context.add_output_metadata(labelled({"evaluations": 0, "questions": 0}))
        return
    moved, folder = archived
    context.add_output_metadata(
        labelled(
            {
                "evaluations": moved.evaluations,
                "questions": moved.questions,
                "folder": dg.MetadataValue.path(folder),
            }
        )
    )


@dg.job(name="archive_evaluations", description=Message.JOB_ARCHIVE)
def archive_evaluations_job() -> None:
    """Archive the questions of old evaluations."""
    archive_old_questions()
