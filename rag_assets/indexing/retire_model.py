"""The job that ends a model migration by dropping the old model's vectors."""

from typing import Any

import dagster as dg
from pydantic import Field

from rag_assets.labels import labelled
from rag_assets.launchpad import LaunchpadConfig
from rag_assets.runs.failures import told_as_failure
from rag_resources.core.messages import Message
from rag_resources.resources import RagResource

MEGABYTE = 1_000_000


class RetireConfig(LaunchpadConfig):
    """What to retire, as the launchpad asks for it."""

    model: str = Field(description=Message.FIELD_RETIRE_MODEL)
    confirm: str = Field(default="", description=Message.FIELD_RETIRE_CONFIRM)


@dg.op(description=Message.JOB_RETIRE_MODEL)
def retire_embedding_model(
    context: dg.OpExecutionContext, config: RetireConfig, rag: RagResource
) -> None:
    """Drop a model's data if the model is named twice; otherwise list what would be dropped."""
    is_confirmed = config.confirm == config.model
    with told_as_failure():
        contents = (
            rag.indexing.retire(config.model)
            if is_confirmed
            else rag.indexing.contents_of(config.model)
        )
        configurations = rag.indexing.configurations_of(config.model)
    message = Message.RETIRED if is_confirmed else Message.RETIRE_NOT_CONFIRMED
    told = (Message.RETIRED_BEFORE if contents.retired else message).format(
        model=config.model,
        chunk_vectors=contents.chunk_vectors,
        note_vectors=contents.note_vectors,
        windows=contents.windows,
        megabytes=contents.size / MEGABYTE,
    )
    metadata: dict[str, Any] = {
        "model": config.model,
        "chunk_vectors": contents.chunk_vectors,
        "note_vectors": contents.note_vectors,
        "windows": contents.windows,
        "pending_notes": contents.pending,
        "failures": contents.failures,
        "bytes": contents.size,
        "configurations": ", ".join(configurations) or "–",
    }
    if not is_confirmed:
        raise dg.Failure(told, metadata=labelled(metadata), allow_retries=False)
    context.log.info(told)
    context.add_output_metadata(labelled(metadata))


@dg.job(name="retire_model", description=Message.JOB_RETIRE_MODEL)
def retire_model_job() -> None:
    """Drop the old model's vectors."""
    retire_embedding_model()
