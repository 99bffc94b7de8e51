"""Reads a question before it is searched: the conversation, abbreviations and implied conditions.

The rules are in `core.question_reading` and `core.conversation`; this module looks up what exists.
"""

import re
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import psycopg
import structlog
from pydantic import BaseModel

from rag_resources.core.conversation import MAX_TURNS, Carried, carry_over, invents_nothing
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DeadlineExceededError, ProviderError, RagError
from rag_resources.core.filters import RetrievalFilters, narrowed
from rag_resources.core.messages import Message
from rag_resources.core.query import MAX_QUERY_CHARS
from rag_resources.core.question_reading import (
    OPINION,
    QuestionSigns,
    period_filter,
    read_question,
    says_nothing,
)
from rag_resources.core.reading import Implied, ImpliedKind, Reading
from rag_resources.core.text import is_blank
from rag_resources.core.wording import as_written, fold
from rag_resources.database.pool import Connection, Database
from rag_resources.languages.prompts import prompt
from rag_resources.providers.inputs import as_data
from rag_resources.providers.protocols import LanguageModel
from rag_resources.store.questions import (
    MOST_NOTES,
    NamedFile,
    expand_abbreviations,
    find_named_files,
    find_named_people,
    find_named_values,
    find_titled,
)

READ_MS = 500.0
"""Longest time for looking up what a question names."""
REWRITE_MS = 5_000.0
"""Longest time of a language model that rewrites a question to stand alone."""
_TURN_CHARS = 500

_log = structlog.get_logger()


class StandaloneQuestion(BaseModel):
    """A question that needs no conversation."""

    question: str


class QuestionReader:
    """Reads questions; thread-safe.

    Args:
        database: Where files, names and abbreviations are looked up. If it cannot be read, nothing
            is implied.
        language_model: Rewrites a question of a conversation to stand alone; None uses rules.
    """

    def __init__(self, database: Database, language_model: LanguageModel | None) -> None:
        self._database = database
        self._model = language_model

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

        Args:
            question: As it was asked.
            language: Of the question.
            turns: The questions before, oldest first.
            filters: The caller's conditions, which always hold.
            ignored: Implied conditions that were revoked, by their text.
        """
        carried = self._carried(question, turns, language)
        signs = read_question(carried.searched, language)
        reading = Reading(
            question,
            carried.searched,
            signs.intent,
            signs.complexity,
            filters,
            carried=carried.words,
            notes=(Message.ASKED_OPINION,) if signs.intent == OPINION else (),
        )
        if reading.asks_back:
            return reading
        revoked = {fold(text.strip()) for text in ignored}
        try:
            deadline = Deadline.after(READ_MS, time.monotonic)
            with self._database.transaction(deadline) as connection:
                return _looked_up(connection, reading, signs, revoked)
        except (RagError, psycopg.Error) as error:
            _log.warning("question_not_looked_up", error=type(error).__name__)
            return reading

    def _carried(self, question: str, turns: Sequence[str], language: str) -> Carried:
        by_rules = carry_over(question, turns, language)
        if len(by_rules.searched) > MAX_QUERY_CHARS:
            return Carried(question)
        if self._model is None or not turns or by_rules.searched == question:
            return by_rules
        try:
            written = self._model.answer(
                _conversation(question, turns, language),
                StandaloneQuestion,
                system=prompt("conversation", language).system,
                deadline=Deadline.after(REWRITE_MS, time.monotonic),
            ).question
        except (ProviderError, DeadlineExceededError) as error:
            _log.warning("question_not_rewritten", error=type(error).__name__)
            return by_rules
        line = " ".join(written.split())
        if is_blank(line) or len(line) > MAX_QUERY_CHARS or says_nothing(line, language):
            return by_rules
        if not invents_nothing(line, [*turns[-MAX_TURNS:], question]):
            _log.warning("question_rewritten_with_inventions", model=self._model.name)
            return by_rules
        return Carried(line, by_rules.words)


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
    """Return a reading with those named files, people and values that exist."""
    found = expand_abbreviations(connection, signs.abbreviations)
    expansions = {own.abbreviation: own.expansion for own in found}
    files = _files(connection, signs, revoked)
    implied = [own for own in _implied(connection, signs, files) if fold(own.text) not in revoked]
    reading = replace(
        reading,
        searched=_expanded(reading.searched, expansions),
        expansions=expansions,
        notes=(*reading.notes, *_missing(signs, files, revoked)),
    )
    filters = reading.filters or RetrievalFilters()
    kept: list[Implied] = []
    for own in implied:
        both = narrowed(filters, own.filters)
        if both is not None:  # None: no note could meet both; the caller's counts.
            filters = both
            kept.append(_as_written(reading.question, own))
    several = [own.note_ids for own in files] if len(files) > 1 else []
    return replace(
        reading,
        filters=None if filters.is_empty else filters,
        implied=tuple(kept),
        files=tuple(several),
    )


def _as_written(question: str, implied: Implied) -> Implied:
    """Return a condition that is shown as the question writes it, with its accents."""
    text = as_written(question, implied.text)
    if implied.kind is not ImpliedKind.TITLE:
        return replace(implied, text=text)
    shown = re.sub(r"\w+", lambda word: as_written(question, word[0]), implied.shown)
    return replace(implied, text=text, shown=shown)


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
    for titled in signs.titled:
        ids = find_titled(connection, titled)
        if 0 < len(ids) <= MOST_NOTES:
            condition = RetrievalFilters(note_ids=tuple(ids))
            yield Implied(ImpliedKind.TITLE, titled.text, titled.shown, condition)
    yield from _named(connection, signs)
    if signs.periods:
        start, end = period_filter(signs.periods)
        text = ", ".join(own.text for own in signs.periods)
        shown = _days_in_words(start, end)
        condition = RetrievalFilters(created_from=start, created_until=end)
        yield Implied(ImpliedKind.PERIOD, text, shown, condition)


def _days_in_words(start: datetime, end: datetime) -> str:
    """Return the first and the last day of a period that does not contain its end."""
    first, last = (f"{day:%Y-%m-%d}" for day in (start, end - timedelta(microseconds=1)))
    return first if first == last else f"{first} – {last}"


def _named(connection: Connection, signs: QuestionSigns) -> Iterator[Implied]:
    values = find_named_values(connection, signs.names)
    known = {value.text for value in values}
    for value in values:
        if sum(other.text == value.text for other in values) == 1:
            condition = RetrievalFilters(metadata={value.key: value.value})
            shown = f"{value.key} = {value.value}"
            yield Implied(ImpliedKind.NAME, value.text, shown, condition)
    for person in find_named_people(connection, [own for own in signs.people if own not in known]):
        if len(person.note_ids) <= MOST_NOTES:
            condition = RetrievalFilters(note_ids=person.note_ids)
            yield Implied(ImpliedKind.PERSON, person.text, person.name, condition)


def _missing(
    signs: QuestionSigns, files: Sequence[NamedFile], revoked: Collection[str]
) -> list[str]:
    """Say which files a question names that do not exist."""
    there = {fold(text) for own in files for text in (own.text, own.name)} | set(revoked)
    stems = {text.rpartition(".")[0] or text for text in there}
    return [
        Message.ASKED_FILE_MISSING.format(name=name)
        for name in signs.file_names
        if fold(name) not in there
        and fold(name).rpartition(".")[0] not in stems
        and not _ends_one(fold(name), there)
    ]


def _expanded(question: str, expansions: dict[str, str]) -> str:
    """Return a question followed by the expansions of its abbreviations."""
    said = fold(question)
    added = [own for own in expansions.values() if fold(own) not in said]
    return f"{question.rstrip()} ({', '.join(added)})"[:MAX_QUERY_CHARS] if added else question
