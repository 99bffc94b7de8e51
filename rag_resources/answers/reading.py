"""Reads a question before it is searched: what it goes on from, and the conditions it implies.

The rules are in `core.question_reading`; this module looks up what exists.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import psycopg
import structlog
from pydantic import BaseModel

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DeadlineExceededError, ProviderError, RagError
from rag_resources.core.filters import RetrievalFilters, narrowed
from rag_resources.core.periods import MADRID, Period
from rag_resources.core.query import MAX_QUERY_CHARS
from rag_resources.core.question_reading import (
    Implied,
    ImpliedKind,
    QuestionSigns,
    Reading,
    goes_on,
    invents_nothing,
    read_question,
)
from rag_resources.core.wording import as_written, content, fold
from rag_resources.database.pool import Connection, Database
from rag_resources.languages.messages import _
from rag_resources.prompts import prompt
from rag_resources.providers.inputs import as_data
from rag_resources.providers.protocols import LanguageModel
from rag_resources.store.questions import (
    MOST_NOTES,
    NamedFile,
    find_named_files,
    find_named_values,
)

READ_MS = 500.0
"""Longest time for looking up what a question names."""
REWRITE_MS = 5_000.0
"""Longest time of a language model that rewrites a question to stand alone."""
MAX_TURNS = 5
"""Most earlier turns that a language model is shown."""
_TURN_CHARS = 500

_log = structlog.get_logger()


class StandaloneQuestion(BaseModel):
    """A question that needs no conversation."""

    question: str


class QuestionReader:
    """Reads questions; thread-safe.

    Args:
        database: Where files and values are looked up. If it cannot be read, nothing is implied.
        language_model: Rewrites a question of a conversation to stand alone; None searches it
            together with the one before.
        zone: The reader's time zone.
    """

    def __init__(
        self, database: Database, language_model: LanguageModel | None, zone: ZoneInfo = MADRID
    ) -> None:
        self._database = database
        self._model = language_model
        self._zone = zone

    def read(
        self,
        question: str,
        *,
        language: str,
        turns: Sequence[str] = (),
        filters: RetrievalFilters | None = None,
        ignored: Collection[str] = (),
    ) -> Reading:
        """Read a question.

        What the question itself names replaces what the one before named.

        Args:
            question: As it was asked.
            language: Of the question.
            turns: The questions before, as they were searched, oldest first.
            filters: The caller's conditions, which always hold.
            ignored: Implied conditions that were revoked, by their text.
        """
        searched, focus = self._searched(question, turns, language)
        reading = Reading(question, searched, filters, focus=focus)
        today = datetime.now(self._zone).date()
        signs = read_question(question, language, today, self._zone)
        if searched != question and not (signs.periods or signs.file_names):
            signs = read_question(searched, language, today, self._zone)
        revoked = {fold(text.strip()) for text in ignored}
        try:
            deadline = Deadline.after(READ_MS, time.monotonic)
            with self._database.transaction(deadline) as connection:
                return _looked_up(connection, reading, signs, revoked)
        except (RagError, psycopg.Error) as error:
            _log.warning("question_not_looked_up", error=type(error).__name__)
            return reading

    def _searched(self, question: str, turns: Sequence[str], language: str) -> tuple[str, str]:
        """Return the text to search for a question, and its focus."""
        together = f"{turns[-1].rstrip()} {question}" if turns else question
        if not turns or not goes_on(question, language) or len(together) > MAX_QUERY_CHARS:
            return question, question
        rewritten = self._rewritten(question, turns, language)
        if rewritten:
            return rewritten, rewritten
        return together, question if content(question, language) else together

    def _rewritten(self, question: str, turns: Sequence[str], language: str) -> str | None:
        """Return the question as a language model makes it stand alone; None if it does not."""
        if self._model is None:
            return None
        try:
            written = self._model.answer(
                _conversation(question, turns, language),
                StandaloneQuestion,
                system=prompt("conversation", language).system,
                deadline=Deadline.after(REWRITE_MS, time.monotonic),
            ).question
        except (ProviderError, DeadlineExceededError) as error:
            _log.warning("question_not_rewritten", error=type(error).__name__)
            return None
        line = " ".join(written.split())
        if len(line) > MAX_QUERY_CHARS or not content(line, language):
            return None
        if not invents_nothing(line, [*turns[-MAX_TURNS:], question]):
            _log.warning("question_rewritten_with_inventions", model=self._model.name)
            return None
        return line


def _conversation(question: str, turns: Sequence[str], language: str) -> str:
    shown = "\n".join(as_data(" ".join(turn.split())[:_TURN_CHARS]) for turn in turns[-MAX_TURNS:])
    asked = as_data(" ".join(question.split()))
    return (
        f"<conversacion>\n{shown}\n</conversacion>\n<pregunta>\n{asked}\n</pregunta>\n"
        f"{prompt('conversation', language).task}"
    )


def _looked_up(
    connection: Connection, reading: Reading, signs: QuestionSigns, revoked: Collection[str]
) -> Reading:
    """Return a reading with those named files and values that exist."""
    files = _files(connection, signs, revoked)
    filters = reading.filters or RetrievalFilters()
    kept: list[Implied] = []
    for own in _implied(connection, signs, files):
        both = narrowed(filters, own.filters)
        # None: no note could meet both; the caller's counts.
        if both is not None and fold(own.text) not in revoked:
            filters = both
            kept.append(replace(own, text=as_written(reading.searched, own.text)))
            if own.kind is ImpliedKind.PERIOD:
                # The words of a period do not answer what happened in it.
                asked = reading.focus.replace(kept[-1].text, " ")
                reading = replace(reading, focus=asked if content(asked) else reading.focus)
    several = tuple(own.note_ids for own in files) if len(files) > 1 else ()
    return replace(
        reading,
        filters=None if filters.is_empty else filters,
        implied=tuple(kept),
        files=several,
        notes=_missing(signs, files, revoked),
    )


def _files(
    connection: Connection, signs: QuestionSigns, revoked: Collection[str]
) -> list[NamedFile]:
    """Return the files that a question names, without those that were revoked.

    If names end alike, as "final report.pdf" and "report.pdf", the question means the longest.
    """
    found = find_named_files(connection, (*signs.file_names, *signs.phrases))
    texts = [fold(own.text) for own in found]
    return [
        own
        for own in found
        if len(own.note_ids) <= MOST_NOTES
        and not {fold(own.text), fold(own.name)} & set(revoked)
        and not _ends_one(fold(own.text), texts)
    ]


def _ends_one(name: str, names: Collection[str]) -> bool:
    """Whether another of the names ends with the words of this one."""
    return any(other.endswith(f" {name}") for other in names)


def _implied(
    connection: Connection, signs: QuestionSigns, files: Sequence[NamedFile]
) -> Iterator[Implied]:
    if files:
        notes = tuple(dict.fromkeys(note for own in files for note in own.note_ids))[:MOST_NOTES]
        for own in files:
            # Several files are searched one by one; together they are one condition.
            yield Implied(ImpliedKind.FILE, own.text, own.name, RetrievalFilters(note_ids=notes))
        return
    values = find_named_values(connection, signs.names)
    for value in values:
        if sum(other.text == value.text for other in values) == 1:
            condition = RetrievalFilters(metadata={value.key: value.value})
            shown = f"{value.key} = {value.value}"
            yield Implied(ImpliedKind.NAME, value.text, shown, condition)
    if signs.periods:
        yield _in_period(signs.periods)


def _in_period(periods: Sequence[Period]) -> Implied:
    """Return the condition of some periods: from the first day to the last."""
    starts, ends = [own.start for own in periods], [own.end for own in periods]
    start = None if None in starts else min(filter(None, starts))
    end = None if None in ends else max(filter(None, ends))
    first = f"{start:%Y-%m-%d}" if start else "…"
    last = f"{end - timedelta(microseconds=1):%Y-%m-%d}" if end else "…"
    return Implied(
        ImpliedKind.PERIOD,
        ", ".join(own.text for own in periods),
        first if first == last else f"{first} – {last}",
        RetrievalFilters(created_from=start, created_until=end),
    )


def _missing(
    signs: QuestionSigns, files: Sequence[NamedFile], revoked: Collection[str]
) -> tuple[str, ...]:
    """Say which files a question names that do not exist."""
    there = {fold(text) for own in files for text in (own.text, own.name)} | set(revoked)
    stems = {text.rpartition(".")[0] or text for text in there}
    return tuple(
        _("There is no file “{name}”; everything was searched.").format(name=name)
        for name in signs.file_names
        if fold(name) not in there
        and fold(name).rpartition(".")[0] not in stems
        and not _ends_one(fold(name), there)
    )
