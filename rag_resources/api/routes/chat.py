"""OpenAI's API: `/v1/chat/completions`, `/v1/embeddings` and `/v1/models`."""

from base64 import b64encode
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from rag_resources.api.admission import Admission
from rag_resources.api.bodies import MOST_TURNS, ChatMessage, ChatRequest, EmbeddingsRequest, Search
from rag_resources.api.identity import Reader
from rag_resources.api.problems import INVALID, ProblemError, invalid, openai_error, problem_of
from rag_resources.api.routes.answers import EVENTS, HEARTBEAT, event, event_stream
from rag_resources.api.searching import asked_as_json, now, searched, streamed
from rag_resources.application.answers import Asked
from rag_resources.core.citations import AnswerSentence, CitedAnswer, numbered
from rag_resources.core.errors import RagError
from rag_resources.core.query import MAX_QUERY_CHARS
from rag_resources.core.quoting import shown
from rag_resources.core.text import count_tokens
from rag_resources.languages.messages import _, about, render

router = APIRouter(tags=["openai"])

SERVING = "rag"
"""The model that stands for the serving configuration."""


@router.get("/v1/models", response_model=dict[str, Any])
def models(request: Request, caller: Reader) -> JSONResponse:
    """List the models to chat with (`rag` serves, others are configurations) and to embed with."""
    listed = [_model(name) for name in (*_names(request), *_embedding_models(request))]
    return JSONResponse({"object": "list", "data": listed})


@router.get("/v1/models/{name}", response_model=dict[str, Any])
def model(request: Request, caller: Reader, name: str) -> JSONResponse:
    """Show a model."""
    _check_model(name, (*_names(request), *_embedding_models(request)))
    return JSONResponse(_model(name))


@router.post("/v1/embeddings", response_model=dict[str, Any])
async def embeddings(request: Request, caller: Reader, body: EmbeddingsRequest) -> JSONResponse:
    """Embed texts as the passages of notes are embedded."""
    _check_model(body.model, _embedding_models(request))
    texts = [body.input] if isinstance(body.input, str) else body.input
    embedder = request.app.state.tenants.own.application.embedder(body.model)
    admission: Admission = request.app.state.admission
    vectors = await admission.run(
        request.state.arrived_at, lambda _: embedder.embed_passages(texts).astype("<f4")
    )
    as_text = body.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": b64encode(each.tobytes()).decode() if as_text else each.tolist(),
        }
        for index, each in enumerate(vectors)
    ]
    tokens = sum(map(count_tokens, texts))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return JSONResponse({"object": "list", "data": data, "model": body.model, "usage": usage})


@router.post("/v1/chat/completions", response_model=dict[str, Any], responses={200: EVENTS})
async def chat(request: Request, caller: Reader, body: ChatRequest) -> Response:
    """Answer the last message with sentences of the notes and their numbered sources.

    Beside OpenAI's fields an answer has `citations` and `reading`, which tells how the question was
    searched; the text ends with that in words.
    """
    _check_model(body.model, _names(request))
    last = body.messages[-1]
    if last.role != "user" or not last.text.strip():
        raise invalid(
            _("messages: a question is missing: the last message must be of “user” and have text")
        )
    named = None if body.model == SERVING else body.model
    search = Search(query=last.text.strip()[-MAX_QUERY_CHARS:], configuration=named)
    reading: dict[str, Any] = {
        "conversation": _turns(body.messages[:-1]),
        "ignored": body.ignored,
    }
    language = request.app.state.settings.answer_language

    head = {"id": f"chatcmpl-{uuid4().hex}", "created": now(), "model": body.model}
    if body.stream:
        sentences = await streamed(request, caller, search, reading)
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        return event_stream(_chunks(sentences, head, language, with_usage=with_usage))

    def work(asked: Asked) -> Asked:
        asked_as_json(asked, language)  # Raises if nothing could be searched.
        return asked

    asked = await searched(
        request,
        caller,
        search,
        lambda app, arguments: work(app.answers.ask(search.query, **arguments, **reading)),
    )
    citations = [citation.to_json() for citation in numbered(asked.answer.sentences)]
    message = {"role": "assistant", "content": "".join(_pieces(asked, language)), "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return JSONResponse(
        {
            **head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": _usage(asked),
            "citations": citations,
            "reading": _reading(asked, language),
        }
    )


def _turns(before: Sequence[ChatMessage]) -> tuple[str, ...]:
    """Return the questions before the last one, oldest first."""
    asked = [each.text for each in before if each.role == "user" and each.text.strip()]
    return tuple(text[:MAX_QUERY_CHARS] for text in asked[-MOST_TURNS:])


async def _chunks(
    sentences: AsyncGenerator[AnswerSentence | Asked | None, None],
    head: dict[str, Any],
    language: str,
    *,
    with_usage: bool,
) -> AsyncGenerator[str, None]:
    head = {**head, "object": "chat.completion.chunk"}

    def chunk(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return event({**head, "choices": [choice], **more})

    yield chunk({"role": "assistant", "content": ""})
    written: list[AnswerSentence] = []
    async with aclosing(sentences):
        try:
            async for each in sentences:
                if each is None:
                    yield HEARTBEAT
                elif isinstance(each, Asked):
                    asked_as_json(each, language)
                    yield chunk({"content": _ending(each, language)})
                    cited = [citation.to_json() for citation in numbered(written)]
                    yield chunk({}, "stop", citations=cited, reading=_reading(each, language))
                    if with_usage:
                        yield event({**head, "choices": [], "usage": _usage(each)})
                else:
                    written.append(each)
                    yield chunk({"content": _marked(written)})
        except (RagError, ProblemError) as error:
            problem = error if isinstance(error, ProblemError) else problem_of(error)
            yield event({"error": openai_error(problem, language)})
    yield "data: [DONE]\n\n"


def _pieces(asked: Asked, language: str) -> Iterator[str]:
    """Return the text of an answer, a sentence at a time, then its sources."""
    sentences = asked.answer.sentences
    for count in range(1, len(sentences) + 1):
        yield _marked(sentences[:count])
    yield _ending(asked, language)


def _marked(sentences: Sequence[AnswerSentence]) -> str:
    """Return the last of these sentences, with the numbers of its sources."""
    numbers = numbered(sentences)
    *before, last = sentences
    marks = "".join(f"[{numbers[own]}]" for own in dict.fromkeys(last.citations))
    return f"{' ' if before else ''}{last.text} {marks}"


def _ending(asked: Asked, language: str) -> str:
    """Return the sources of an answer, or the reason for none; then what was searched."""
    answer = asked.answer
    said = "".join(_sources(answer)) if answer.found else render(answer.notice, language)
    told = [render(each, language) for each in asked.reading.told]
    return "\n\n".join((said, *told))


def _usage(asked: Asked) -> dict[str, int]:
    """Return the tokens of the language model; none without one."""
    prompt, completion = asked.metadata.prompt_tokens or 0, asked.metadata.completion_tokens or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _reading(asked: Asked, language: str) -> dict[str, Any]:
    """Return how the question was read."""
    return asked.reading.reworded(lambda text: render(text, language)).to_json()


def _sources(answer: CitedAnswer) -> Iterator[str]:
    for citation, number in numbered(answer.sentences).items():
        day = f", {citation.created_at:%Y-%m-%d}" if citation.created_at else ""
        start = "\n\n" if number == 1 else "\n"
        yield f"{start}[{number}] {citation.label}{day}"


def _names(request: Request) -> tuple[str, ...]:
    configurations = request.app.state.tenants.own.application.configurations
    return (SERVING, *(name for name in configurations if name != SERVING))


def _embedding_models(request: Request) -> tuple[str, ...]:
    models: tuple[str, ...] = request.app.state.settings.all_models
    return models


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "brain-sync-rag"}


def _check_model(name: str, known: Sequence[str]) -> None:
    if name not in known:
        problem = _("“{value}” is not one of the options: {expected}").format(
            value=shown(name), expected=", ".join(known)
        )
        raise ProblemError(HTTPStatus.NOT_FOUND, INVALID, [about("model", problem)])
