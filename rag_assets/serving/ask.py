"""The ad hoc job that answers a question with citations."""

from contextlib import closing
from functools import partial
from typing import Any

import dagster as dg
from pydantic import Field

from rag_assets.labels import labelled, stage_times
from rag_assets.runs.failures import told_as_failure
from rag_assets.serving.retrieve import RetrieveConfig
from rag_resources.application.answers import Asked
from rag_resources.core.blocks import rendered
from rag_resources.core.citations import AnswerSentence, Citation, numbered
from rag_resources.core.filters import parse_filters
from rag_resources.core.markdown import plain
from rag_resources.core.query import check_language
from rag_resources.languages.formats import day
from rag_resources.languages.messages import _, readers, render
from rag_resources.resources import RagResource
from rag_resources.retrieval.confidence import answer_in_words
from rag_resources.retrieval.notices import parts_in_words


class AskConfig(RetrieveConfig):
    """A question to answer, and how it is read."""

    conversation: list[str] = Field(
        default=[],
        description=_(
            "The questions before in the conversation, as they were searched, oldest first."
        ),
    )
    ignored: list[str] = Field(
        default=[],
        description=_(
            "Disregard a condition that the question names, such as “in 2025”; repeatable."
        ),
    )


@dg.op(
    description=_(
        "Answers a question with cited sentences: the log shows them as they are checked, and the "
        "answer stays as metadata."
    )
)
def answer_question(context: dg.OpExecutionContext, config: AskConfig, rag: RagResource) -> None:
    """Answer one question; each sentence is in the log as soon as it is checked."""
    strategy = {"strategy": config.strategy} if config.strategy else {}
    language = config.language or rag.settings.answer_language
    reader = readers(config.language, rag.settings.answer_language)
    told = partial(render, language=reader)
    asked: Asked | None = None
    with told_as_failure(reader):
        check_language(language)
        events = rag.application.answers.stream(
            config.question,
            configuration=config.configuration or None,
            overrides={**config.overrides, **strategy},
            top_k=config.top_k or None,
            filters=parse_filters(config.filters),
            language=language,
            conversation=config.conversation,
            ignored=config.ignored,
        )
        with closing(events):
            for event in events:
                if isinstance(event, AnswerSentence):
                    context.log.info(event.text)
                else:
                    asked = event.reworded(told)
    assert asked is not None
    for message in asked.retrieval.response.messages:
        context.log.warning(message)
    metadata = answer_metadata(asked, reader)
    if asked.error:
        raise dg.Failure(asked.error, metadata=metadata, allow_retries=False)
    context.add_output_metadata(metadata)


@dg.job(
    name="ask",
    description=_(
        "Answers a question with cited sentences: the log shows them as they are checked, and the "
        "answer stays as metadata."
    ),
    config=dg.RunConfig(
        ops={
            "answer_question": AskConfig(question=_("¿qué pasó con la insulina durante el apagón?"))
        }
    ),
)
def ask_job() -> None:
    """Answer one question with citations."""
    answer_question()


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
