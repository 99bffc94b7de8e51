"""The jobs people launch: index, evaluate, promote, and the ad hoc retrieval."""

import dagster as dg
from pydantic import Field

from rag_assets.assets.evaluation import evaluation_assets, evaluation_report, golden_dataset
from rag_assets.assets.indexing import chunks, embeddings_assets
from rag_assets.assets.ingestion import note_embeddings, notes
from rag_assets.assets.serving import promoted_config
from rag_assets.failures import told_as_failure
from rag_resources.core.configuration import with_overrides
from rag_resources.core.messages import Message
from rag_resources.core.types import RetrievalResponse
from rag_resources.resources import RagResource

PASSAGE_CHARS = 240

ingest_job = dg.define_asset_job(
    "ingest",
    selection=dg.AssetSelection.assets(notes, note_embeddings),
    description=Message.ASSET_NOTES,
)

index_job = dg.define_asset_job(
    "index",
    selection=dg.AssetSelection.assets(chunks, *embeddings_assets),
    description=Message.JOB_INDEX,
)

golden_job = dg.define_asset_job(
    "golden",
    selection=dg.AssetSelection.assets(golden_dataset),
    description=Message.ASSET_GOLDEN,
)

evaluate_job = dg.define_asset_job(
    "evaluate",
    selection=dg.AssetSelection.assets(*evaluation_assets, evaluation_report),
    description=Message.JOB_EVALUATE,
)

promote_job = dg.define_asset_job(
    "promote",
    selection=dg.AssetSelection.assets(promoted_config),
    description=Message.JOB_PROMOTE,
)


class RetrieveConfig(dg.Config):
    """A question, as the launchpad asks for it."""

    question: str = Field(description=Message.FIELD_QUESTION)
    configuration: str = Field(default="", description=Message.FIELD_CONFIGURATION)
    strategy: str = Field(default="", description=Message.FIELD_STRATEGY)
    top_k: int = Field(default=0, ge=0, description=Message.FIELD_TOP_K)


@dg.op(description=Message.JOB_RETRIEVE)
def retrieve_passages(
    context: dg.OpExecutionContext, config: RetrieveConfig, rag: RagResource
) -> None:
    """Ask one question and show its passages as a table in the run."""
    application = rag.application
    with told_as_failure():
        base = (
            application.configuration(config.configuration).retrieval
            if config.configuration
            else application.serving()
        )
        wanted = with_overrides(base, {"strategy": config.strategy or None})
        response = application.pipeline.retrieve(
            config.question, wanted, top_k=config.top_k or None
        )
    context.log.info("%d passages in %.0f ms", len(response.results), response.latency_ms)
    context.add_output_metadata(
        {
            "results": dg.MetadataValue.md(results_markdown(response)),
            "strategy": response.strategy,
            "model": response.model,
            "latency_ms": response.latency_ms,
            "degraded": ", ".join(response.degraded) or "–",
            "messages": "\n".join(response.messages) or "–",
            "response": dg.MetadataValue.json(response.to_json()),
        }
    )


@dg.job(
    name="retrieve",
    description=Message.JOB_RETRIEVE,
    config=dg.RunConfig(
        ops={
            "retrieve_passages": RetrieveConfig(
                question=Message.EXAMPLE_QUESTION, strategy="hybrid", top_k=5
            )
        }
    ),
)
def retrieve_job() -> None:
    """The ad hoc retrieval."""
    retrieve_passages()


def results_markdown(response: RetrievalResponse) -> str:
    """Return the passages as a Markdown table."""
    if not response.results:
        return Message.NO_RESULTS
    rows = [Message.TABLE_RESULTS, "|---|---|---|---|---|---|"]
    for rank, result in enumerate(response.results, start=1):
        passage = _cell(result.content, PASSAGE_CHARS)
        date = f"{result.created_at:%Y-%m-%d}" if result.created_at else ""
        rows.append(
            f"| {rank} | {result.score:.4f} | {date} | {_cell(result.title, 60)} | {passage} "
            f"| {result.retrieval_method} |"
        )
    return "\n".join(rows)


def _cell(text: str, limit: int) -> str:
    line = " ".join(text.split()).replace("|", "\\|")
    return line if len(line) <= limit else line[: limit - 1] + "…"
