"""`rag ask`: answers a question with sentences of the notes, each with its citation."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.feedback import ID_CHARS
from rag_resources.cli.output import (
    JsonOption,
    clean,
    fail,
    note,
    say,
    told,
    told_day,
    working,
    write_json,
)
from rag_resources.cli.retrieve import warn_of
from rag_resources.cli.search_options import (
    ConfigOption,
    FilterOption,
    LanguageOption,
    Search,
    SetOption,
    TopKOption,
    search_of,
)
from rag_resources.cli.session import application
from rag_resources.core.errors import InvalidParameterError, RagError
from rag_resources.languages.messages import _, joined

if TYPE_CHECKING:
    from rag_resources.application import Application
    from rag_resources.application.answers import Asked
    from rag_resources.core.citations import AnswerSentence, Citation

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def ask(
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="PREGUNTA",
            help=_("The question; without it, each line typed or piped is one."),
        ),
    ] = None,
    config: ConfigOption = None,
    top_k: TopKOption = None,
    changed: SetOption = None,
    filters: FilterOption = None,
    language: LanguageOption = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--after", metavar="RESPUESTA", help=_("The answer that the question refers to.")
        ),
    ] = None,
    ignored: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="TEXTO",
            help=_("Disregard a condition that the question names, such as “in 2025”; repeatable."),
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question with cited sentences; without one, each that is typed until the end."""

    def search(asked: str) -> Search:
        return search_of(
            asked,
            config=config,
            top_k=top_k,
            changed=changed,
            filters=filters,
            language=language,
            has_words=False,
        )

    options = {"ignored": tuple(ignored or ())}
    # A question of the command line is checked before anything starts.
    given = None if question is None else search(question)
    with application() as app:
        turns, asked = _turns(app, after), None
        if given is not None:
            asked = _answer(app, given, options | {"conversation": turns}, as_json=as_json)
        for line in _typed() if given is None else ():
            try:
                asked = _answer(
                    app, search(line), options | {"conversation": turns}, as_json=as_json
                )
            except RagError as error:
                fail(_("Error: {message}").format(message=error.message))
            else:
                turns = (asked.reading.searched,)
    if asked is None:
        raise InvalidParameterError(_("The argument “{name}” is missing.").format(name="PREGUNTA"))
    if asked.error:
        raise typer.Exit(1)


def _typed() -> Iterator[str]:
    """Yield the questions typed at a terminal, or the lines of a pipe, until they end."""
    if sys.stdin.isatty():
        note(_("Write a question; Ctrl+D ends."))
    with suppress(EOFError):
        while True:
            if line := input("> " if sys.stdin.isatty() else "").strip():
                yield line


def _answer(
    app: "Application", search: Search, options: dict[str, Any], *, as_json: bool
) -> "Asked":
    """Answer a question and write the answer."""
    page = _Page(at_once=sys.stdout.isatty() and not as_json)
    arguments = search.arguments(app) | options
    asked = page.fill(app, search.question, arguments).reworded(told)
    if as_json:
        write_json(asked.to_json())
        return asked
    warn_of(asked.retrieval.response)
    _say_reading(asked)
    if not asked.retrieval.response.error:
        page.finish(asked)
    if asked.error and asked.interruption:
        fail(_("Error: {message}").format(message=asked.interruption))
    return asked


def _turns(app: "Application", after: str | None) -> tuple[str, ...]:
    """Return the earlier question as it was searched, if this one follows up on its answer."""
    if after is None:
        return ()
    answer = app.answer_log.show(after).answer
    turn = answer.searched or answer.question
    if turn is None:
        raise InvalidParameterError(
            _("The question of answer {answer_id} is not kept (ANSWER_LOG_TEXT=none).").format(
                answer_id=after
            )
        )
    return (turn,)


class _Page:
    """Writes an answer: its sentences with their numbers, and the sources below.

    Args:
        at_once: Whether each sentence is written as soon as it is ready.
    """

    def __init__(self, *, at_once: bool) -> None:
        self._at_once = at_once
        self._numbers: dict[Citation, int] = {}

    def fill(self, app: "Application", question: str, arguments: dict[str, Any]) -> "Asked":
        """Ask, and return the whole answer."""
        from rag_resources.core.citations import AnswerSentence

        with ExitStack() as waiting:
            waiting.enter_context(working(_("Searching…")))
            with closing(app.answers.stream(question, **arguments)) as events:
                for event in events:
                    if not isinstance(event, AnswerSentence):
                        return event
                    if self._at_once:
                        waiting.close()
                        self._say(event)
        raise AssertionError("unreachable: the whole answer comes last")

    def finish(self, asked: "Asked") -> None:
        """Write what has not been written yet."""
        from rag_resources.retrieval.confidence import answer_in_words

        if not asked.answer.found:
            say(asked.answer.notice)
        else:
            if not self._at_once:
                for sentence in asked.answer.sentences:
                    self._say(sentence)
            say("")
            say(told(_("Sources")) + ":")
            for citation, number in self._numbers.items():
                say(_("[{number}] {source}").format(number=number, source=_source(citation)))
                if citation.columns:
                    say(told(_("    Columns: “{text}”").format(text=citation.columns)))
            say(_cost(asked))
        for told_of in answer_in_words(asked.confidence, asked.silence):
            say(told_of)
        note(
            _("Answer {answer_id}. Useful? “rag feedback {answer_id} up” or “down”").format(
                answer_id=str(asked.answer_id)[:ID_CHARS]
            )
        )

    def _say(self, sentence: "AnswerSentence") -> None:
        for citation in sentence.citations:
            self._numbers.setdefault(citation, len(self._numbers) + 1)
        marks = " ".join(
            str(self._numbers[own]).translate(_SUPERSCRIPTS) for own in sentence.citations
        )
        say(f"{clean(sentence.marked)} {marks}")
        sys.stdout.flush()


def _say_reading(asked: "Asked") -> None:
    """Write on stderr what was searched besides or instead of the question."""
    reading = asked.reading
    if reading.searched != reading.question:
        note(_("Searched: “{searched}”").format(searched=clean(reading.searched)))
    for own in reading.implied:
        note(
            _(
                'Only {value} (because of “{text}”; without this condition: --ignore "{text}")'
            ).format(value=clean(own.shown), text=clean(own.text))
        )
    for message in reading.notes:
        note(message)


def _cost(asked: "Asked") -> str:
    """Say what answered, from how many passages, in what time and with how many tokens."""
    response, metadata = asked.retrieval.response, asked.metadata
    seconds = (response.latency_ms + metadata.stages.get("answer", 0.0)) / 1_000
    parts = [
        _("Answered by: {answerer}").format(answerer=asked.answer.answerer),
        _("Passages: {passages} · {seconds:.1f} s").format(
            passages=len(response.results), seconds=seconds
        ),
    ]
    if metadata.prompt_tokens is not None and metadata.completion_tokens is not None:
        parts.append(
            _("tokens: {prompt} + {completion}").format(
                prompt=metadata.prompt_tokens, completion=metadata.completion_tokens
            )
        )
    return joined(" · ", parts)


def _source(citation: "Citation") -> str:
    """Say which note is cited, of what day, and where in it."""
    from rag_resources.retrieval.notices import parts_in_words

    parts = [clean(citation.label)]
    if citation.created_at:
        parts.append(told_day(citation.created_at))
    if citation.place and (where := parts_in_words(citation.place.places)):
        parts.append(where)
    parts.append(_("characters {start}–{end}").format(start=citation.start, end=citation.end))
    return joined(" · ", parts)
