"""The notes and golden questions that a run reads, and the choice in its run configuration."""

import dagster as dg
from pydantic import Field

from rag_assets.launchpad import LaunchpadConfig
from rag_resources.application.notes import Notes
from rag_resources.ingestion.content_source import ContentSource
from rag_resources.languages.messages import _


class SourceConfig(LaunchpadConfig):
    """What a person may say of the source, as the launchpad asks for it."""

    sample: bool = Field(
        default=False,
        description=_(
            "Reads the sample, even if the database has other notes; its questions are added to "
            "those that are there."
        ),
    )
    mixes: bool = Field(
        default=False, description=_("Mixes notes of several sources without asking.")
    )


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
