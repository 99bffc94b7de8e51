"""The job that ends a model migration by dropping the old model's vectors."""

from typing import Any

import dagster as dg
from pydantic import Field

from rag_assets.labels import labelled
from rag_assets.launchpad import LaunchpadConfig
from rag_assets.runs.failures import told_as_failure
from rag_resources.core.retrievers import VectorKind
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource

MEGABYTE = 1_000_000


class RetireConfig(LaunchpadConfig):
    """What to retire, as the launchpad asks for it."""

    model: str = Field(description=_("Name of the model to retire."))
    confirm: str = Field(
        default="",
        description=_(
            "The same name, to confirm. Empty: it is only said what would be deleted, and the run "
            "fails."
        ),
    )


@dg.op(
    description=_(
        "Retires an embedding model that nothing points to any more: deletes its vectors, indexes "
        "and queue."
    )
)
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
    message = (
        _("Model “{model}” retired. Vectors deleted: {vectors} ({megabytes:.1f} MB).")
        if is_confirmed
        else _(
            "Nothing was changed. Vectors of the model “{model}” that would be deleted: {vectors} "
            "({megabytes:.1f} MB). To confirm, write “{model}” in confirm as well."
        )
    )
    told = (
        _("The model “{model}” was retired already; nothing was changed.")
        if contents.retired
        else message
    ).format(
        model=config.model,
        vectors=sum(contents.vectors.values()),
        megabytes=contents.size / MEGABYTE,
    )
    metadata: dict[str, Any] = {
        "model": config.model,
        **{f"{kind}_vectors": contents.count(kind) for kind in VectorKind},
        "pending_notes": contents.pending,
        "failures": contents.failures,
        "bytes": contents.size,
        "configurations": ", ".join(configurations) or "–",
    }
    if not is_confirmed:
        raise dg.Failure(told, metadata=labelled(metadata), allow_retries=False)
    context.log.info(told)
    context.add_output_metadata(labelled(metadata))


@dg.job(
    name="retire_model",
    description=_(
        "Retires an embedding model that nothing points to any more: deletes its vectors, indexes "
        "and queue."
    ),
)
def retire_model_job() -> None:
    """Drop the old model's vectors."""
    retire_embedding_model()
