"""The job that archives the questions of old evaluations."""

import dagster as dg

from rag_assets.labels import labelled
from rag_assets.runs.failures import told_as_failure
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource


@dg.op(
    description=_(
        "Moves the questions of evaluations older than 90 days to compressed files; their means "
        "stay. It leaves the last one of each configuration, the promoted ones, and those that "
        "are the reference of a migration."
    )
)
def archive_old_questions(context: dg.OpExecutionContext, rag: RagResource) -> None:
    """Move the questions of old evaluations to files; the averages stay in the database."""
    with told_as_failure():
        archived = rag.evaluations.archive()
    if archived is None:
        context.log.warning(
            _(
                "Nothing was archived and the questions stay in the database: with a database of "
                "your own (DATABASE_URL) the folder RAG_HOME may not last. Say with FILES_URL "
                "where to keep the files, such as s3://bucket/prefix or file:///lasting/folder."
            )
        )
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


@dg.job(
    name="archive_evaluations",
    description=_(
        "Moves the questions of evaluations older than 90 days to compressed files; their means "
        "stay. It leaves the last one of each configuration, the promoted ones, and those that "
        "are the reference of a migration."
    ),
)
def archive_evaluations_job() -> None:
    """Archive the questions of old evaluations."""
    archive_old_questions()
