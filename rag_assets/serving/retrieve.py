"""The ad hoc retrieval job."""

from datetime import UTC
from functools import partial
from typing import Any

import dagster as dg
from pydantic import Field

from rag_assets.labels import labelled, stage_times
from rag_assets.launchpad import LaunchpadConfig
from rag_assets.runs.failures import told_as_failure
from rag_resources.core.blocks import rendered
from rag_resources.core.filters import parse_filters
from rag_resources.core.markdown import plain
from rag_resources.core.query import check_language
from rag_resources.core.tables import markdown_table
from rag_resources.core.types import RetrievalResponse, RetrievalResult
from rag_resources.languages.formats import day, number
from rag_resources.languages.labels import stage_label
from rag_resources.languages.messages import _, joined, readers, render
from rag_resources.resources import RagResource
from rag_resources.retrieval.confidence import confidence_in_words
from rag_resources.retrieval.notices import INTENT_WORDS, parts_in_words

PASSAGE_CHARS = 240


class RetrieveConfig(LaunchpadConfig):
    """A question, as the launchpad asks for it."""

    question: str = Field(description=_("The question."))
    configuration: str = Field(
        default="",
        description=_(
            "Named configuration. By default the promoted one; if there is none, hybrid_windows."
        ),
    )
    strategy: str = Field(
        default="",
        description=_(
            "semantic, fulltext, hybrid or hybrid+rerank, instead of that of the configuration."
        ),
    )
    top_k: int = Field(
        default=0, description=_("How many passages; 0: those of the configuration.")
    )
    overrides: dict[str, Any] = Field(
        default={},
        description=_("Fields of the configuration to change, such as {fusion: {method: rrf}}."),
    )
    filters: dict[str, Any] = Field(
        default={},
        description=_(
            "Conditions on notes: source, tags, note_ids, created_from, created_until, metadata."
        ),
    )
    language: str = Field(
        default="",
        description=_(
            "Language of the question and the answer: es, fr or en. By default that of "
            "ANSWER_LANGUAGE."
        ),
    )


@dg.op(
    description=_(
        "Searches the passages that answer a question, with the configuration that serves."
    )
)
def retrieve_passages(
    context: dg.OpExecutionContext, config: RetrieveConfig, rag: RagResource
) -> None:
    """Answer one question and show its passages as a table in the run."""
    strategy = {"strategy": config.strategy} if config.strategy else {}
    language = config.language or rag.settings.answer_language
    reader = readers(config.language, rag.settings.answer_language)
    with told_as_failure(reader):
        check_language(language)
        answered = rag.application.retrieve(
            config.question,
            configuration=config.configuration or None,
            overrides={**config.overrides, **strategy},
            top_k=config.top_k or None,
            filters=parse_filters(config.filters),
            language=language,
        )
    told = partial(render, language=reader)
    response = answered.response.reworded(told)
    count, latency_ms = len(response.results), response.latency_ms
    context.log.info(
        told(
            _("Passages: {count}, in {latency_ms:.0f} ms").format(
                count=count, latency_ms=latency_ms
            )
        )
    )
    for message in response.messages:
        context.log.warning(message)
    metadata = response_metadata(response, told(answered.configuration), reader)
    if response.error:
        raise dg.Failure(response.error, metadata=metadata, allow_retries=False)
    context.add_output_metadata(metadata)


@dg.job(
    name="retrieve",
    description=_(
        "Searches the passages that answer a question, with the configuration that serves."
    ),
    config=dg.RunConfig(
        ops={
            "retrieve_passages": RetrieveConfig(
                question=_("¿qué pasó con la insulina durante el apagón?")
            )
        }
    ),
)
def retrieve_job() -> None:
    """Answer one question."""
    retrieve_passages()


def response_metadata(
    response: RetrievalResponse, configuration: str, language: str
) -> dict[str, Any]:
    """Return an answer's passages, latency and missing stages for people to read."""
    asked = response.transformed
    beside = [*asked.sub_queries, asked.hypothetical_answer or ""] if asked else []
    return labelled(
        {
            "results": dg.MetadataValue.md(results_markdown(response, language)),
            "messages": "\n".join(response.messages) or "–",
            "degraded": ", ".join(map(stage_label, response.degraded)) or "–",
            "confidence": "\n".join(
                render(sentence, language) for sentence in confidence_in_words(response.confidence)
            )
            if response.confidence
            else "–",
            "configuration": configuration,
            "strategy": response.strategy,
            "model": response.model,
            "intent": render(INTENT_WORDS[asked.intent.value], language) if asked else "–",
            "searched_beside": "\n".join(filter(None, beside)) or "–",
            "cached": response.cached,
            "latency_ms": response.latency_ms,
            **stage_times(response.stages),
            "response": dg.MetadataValue.json(response.to_json()),
        }
    )


def results_markdown(response: RetrievalResponse, language: str) -> str:
    """Return the passages as a Markdown table."""
    if not response.results:
        return render(_("No results."), language)
    rows = (_row(rank, result, language) for rank, result in enumerate(response.results, start=1))
    return markdown_table(
        render(_("| # | score | date | title | passage | method |"), language), rows
    )


def _row(rank: int, result: RetrievalResult, language: str) -> tuple[object, ...]:
    date = day(result.created_at, language) if result.created_at else ""
    found = ["+".join(result.lists)]
    if result.rerank_score is not None:
        scores = {"before": result.original_score, "score": result.rerank_score}
        found.append(_("fusion {before:.3f}, re-ranking {score:.3f}").format(**scores))
    if result.place and (where := parts_in_words(result.place.places)):
        found.insert(0, where)
    title, passage = _title(result), plain(_cut(rendered(result.content), PASSAGE_CHARS))
    score = number(result.score, 4, language)
    return rank, score, date, title, passage, render(joined("; ", found), language)


def _title(result: RetrievalResult) -> str:
    """Return which note a passage is from, as a link to its month among the notes."""
    title = plain(_cut(result.label, 60))
    if result.created_at is None:
        return title
    month = f"{result.created_at.astimezone(UTC):%Y-%m}-01"
    return f"[{title}](/assets/notes?view=partitions&partition={month})"


def _cut(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
