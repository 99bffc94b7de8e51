"""The notes and golden questions that a run reads, and the choice in its run configuration."""

import dagster as dg
from pydantic import Field

from rag_assets.launchpad import LaunchpadConfig
from rag_resources.application.notes import Notes
from rag_resources.core.messages import Message
from rag_resources.ingestion.content_source import ContentSource


class SourceConfig(LaunchpadConfig):
    """What a person may say of the source, as the launchpad asks for it."""

    sample: bool = Field(default=False, description=Message.FIELD_SAMPLE)
    mixes: bool = Field(default=False, description=Message.HELP_MIXES)


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
