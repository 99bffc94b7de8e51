"""The archive of the questions of old evaluations."""

import dagster as dg

from rag_assets.runs.failures import told_as_failure
from rag_resources.core.messages import Message
from rag_resources.evaluation.archive import archive_questions
from rag_resources.files import open_files
from rag_resources.resources import RagResource


@dg.op(description=Message.JOB_ARCHIVE)
def archive_old_questions(context: dg.OpExecutionContext, rag: RagResource) -> None:
    """Move the questions of old evaluations to files; their means stay in the database."""
    application = rag.application
    settings = application.settings
    if not settings.keeps_files:
        context.log.warning(Message.ARCHIVE_WITHOUT_FILES)
        context.add_output_metadata({"evaluations": 0, "questions": 0})
        return
    with told_as_failure():
        files = open_files(settings.files_address)
        report = archive_questions(
            application.database, files, keep_days=settings.evaluation_detail_days
        )
    context.add_output_metadata(
        {
            "evaluations": report.evaluations,
            "questions": report.questions,
            "folder": dg.MetadataValue.path(files.where()),
        }
    )


@dg.job(name="archive_evaluations", description=Message.JOB_ARCHIVE)
def archive_evaluations_job() -> None:
    """The archive of the questions of old evaluations."""
    archive_old_questions()
