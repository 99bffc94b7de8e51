"""The ad hoc retrieval job."""

from typing import Any

import dagster as dg
from pydantic import Field

from rag_assets.runs.failures import told_as_failure
from rag_resources.core.filters import parse_filters
from rag_resources.core.messages import Message
from rag_resources.core.tables import markdown_table
from rag_resources.core.types import RetrievalResponse, RetrievalResult
from rag_resources.resources import RagResource
from rag_resources.retrieval.notices import place_in_words

PASSAGE_CHARS = 240


class RetrieveConfig(dg.Config):
    """A question, as the launchpad asks for it."""

    question: str = Field(description=Message.FIELD_QUESTION)
    configuration: str = Field(default="", description=Message.FIELD_CONFIGURATION)
    strategy: str = Field(default="", description=Message.FIELD_STRATEGY)
    top_k: int = Field(default=0, ge=0, description=Message.FIELD_TOP_K)
    overrides: dict[str, Any] = Field(default={}, description=Message.FIELD_OVERRIDES)
    filters: dict[str, Any] = Field(default={}, description=Message.FIELD_FILTERS)


@dg.op(description=Message.JOB_RETRIEVE)
def retrieve_passages(
    context: dg.OpExecutionContext, config: RetrieveConfig, rag: RagResource
) -> None:
    """Answer one question and show its passages as a table in the run."""
    strategy = {"strategy": config.strategy} if config.strategy else {}
    with told_as_failure():
        answered = rag.application.retrieve(
            config.question,
            configuration=config.configuration or None,
            overrides={**config.overrides, **strategy},
            top_k=config.top_k or None,
            filters=parse_filters(config.filters),
        )
    response = answered.response
    context.log.info(
        Message.PASSAGES_FOUND.format(count=len(response.results), latency_ms=response.latency_ms)
    )
    for message in response.messages:
        context.log.warning(message)
    metadata = response_metadata(response, answered.configuration)
    if response.error:
        raise dg.Failure(response.error, metadata=metadata, allow_retries=False)
    context.add_output_metadata(metadata)


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
    """Answer one question."""
    retrieve_passages()


def response_metadata(response: RetrievalResponse, configuration: str) -> dict[str, Any]:
    """Return an answer's passages, latency and missing stages for people to read."""
    asked = response.transformed
    beside = [*asked.sub_queries, asked.hypothetical_answer or ""] if asked else []
    return {
        "results": dg.MetadataValue.md(results_markdown(response)),
        "messages": "\n".join(response.messages) or "–",
        "degraded": ", ".join(response.degraded) or "–",
        "configuration": configuration,
        "strategy": response.strategy,
        "model": response.model,
        "intent": asked.intent.value if asked else "–",
        "searched_beside": "\n".join(filter(None, beside)) or "–",
        "cached": response.cached,
        "latency_ms": response.latency_ms,
        **{f"{stage}_ms": elapsed for stage, elapsed in response.stages.items()},
        "response": dg.MetadataValue.json(response.to_json()),
    }


def results_markdown(response: RetrievalResponse) -> str:
    """Return the passages as a Markdown table."""
    if not response.results:
        return Message.NO_RESULTS
    rows = (_row(rank, result) for rank, result in enumerate(response.results, start=1))
    return markdown_table(Message.TABLE_RESULTS, rows)


def _row(rank: int, result: RetrievalResult) -> tuple[object, ...]:
    date = f"{result.created_at:%Y-%m-%d}" if result.created_at else ""
    method = result.retrieval_method
    if result.rerank_score is not None:
        scores = Message.RETRIEVED_RERANKED.format(
            before=result.original_score, score=result.rerank_score
        )
        method = f"{method}; {scores}"
    if result.place:
        method = f"{place_in_words(result.place)}; {method}"
    title, passage = _cut(result.title, 60), _cut(result.content, PASSAGE_CHARS)
    return rank, f"{result.score:.4f}", date, title, passage, method


def _cut(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
