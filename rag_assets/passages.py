"""Passages and answers as metadata of a run: Markdown for people, JSON for programs."""

from datetime import UTC
from typing import Any

import dagster as dg

from rag_assets.metadata import labelled, stage_times
from rag_resources.application.answers import Asked
from rag_resources.core.blocks import rendered
from rag_resources.core.citations import AnswerSentence, Citation, numbered
from rag_resources.core.markdown import plain
from rag_resources.core.tables import markdown_table
from rag_resources.core.types import RetrievalResponse, RetrievalResult
from rag_resources.languages.formats import day, number
from rag_resources.languages.labels import stage_label
from rag_resources.languages.messages import _, joined, render
from rag_resources.retrieval.confidence import answer_in_words, confidence_in_words
from rag_resources.retrieval.notices import INTENT_WORDS, parts_in_words

PASSAGE_CHARS = 240


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


def answer_metadata(asked: Asked, language: str) -> dict[str, Any]:
    """Return an answer with its sources for people to read, and its cost."""
    response, metadata = asked.retrieval.response, asked.metadata
    return labelled(
        {
            "answer": dg.MetadataValue.md(answer_markdown(asked, language)),
            "answerer": asked.answer.answerer,
            "confidence": _how_sure(asked, language) or "–",
            "reading": "\n".join(render(each, language) for each in asked.reading.told) or "–",
            "messages": "\n".join(response.messages) or "–",
            "passages": len(response.results),
            **stage_times(metadata.stages),
            "response": dg.MetadataValue.json(asked.to_json()),
        }
    )


def answer_markdown(asked: Asked, language: str) -> str:
    """Return an answer with numbered sources; nothing in it is a link."""
    answer = asked.answer
    if not answer.found:
        return plain(answer.notice)
    numbers = numbered(answer.sentences)
    lines = [
        _block(own) + "".join(f" [{numbers[each]}]" for each in own.citations)
        for own in answer.sentences
    ]
    sources = [f"{number}. {_source(citation, language)}" for citation, number in numbers.items()]
    heading = render(_("Sources"), language)
    return "\n\n".join((*lines, f"**{heading}**", "\n".join(sources)))


def _block(sentence: AnswerSentence) -> str:
    """Return a sentence in bold within the block that it stands in; alone as it is."""
    said, first = plain(rendered(sentence.text)), sentence.citations[0]
    if not sentence.is_quotation or not (first.prefix or first.suffix):
        return said
    parts = (plain(rendered(first.prefix)), f"**{said}**", plain(rendered(first.suffix)))
    return " ".join(filter(None, parts))


def _how_sure(asked: Asked, language: str) -> str:
    """Say how likely an answer is right, and why it was withheld."""
    said = answer_in_words(asked.confidence, asked.silence)
    return "\n".join(render(sentence, language) for sentence in said)


def _source(citation: Citation, language: str) -> str:
    """Return which note is cited, of what day, and where in it."""
    parts = [citation.label]
    if citation.created_at:
        parts.append(day(citation.created_at, language))
    if citation.place and (where := parts_in_words(citation.place.places)):
        parts.append(render(where, language))
    given = _("characters {start}–{end}").format(start=citation.start, end=citation.end)
    return " · ".join(plain(part) for part in (*parts, render(given, language)))
