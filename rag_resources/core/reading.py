"""A question as it is searched: with implied conditions, conversation and expanded abbreviations.

The rules are in `core.question_reading` and `core.conversation`; `answers.reading` applies them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any
from uuid import UUID

from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.messages import Message
from rag_resources.core.question_reading import (
    CLARIFICATION,
    Complexity,
    asks_for_contents,
    says_nothing,
)
from rag_resources.core.wording import fold


class ImpliedKind(StrEnum):
    """Why a condition is implied."""

    PERIOD = "period"
    TITLE = "title"
    FILE = "file"
    NAME = "name"
    """A value of documents' metadata, such as an author."""

    PERSON = "person"
    """A person in the notes whom the question asks about."""


@dataclass(frozen=True, slots=True)
class Implied:
    """A condition that a question implies.

    Attributes:
        text: The condition as the question names it; passing it in `ignored` revokes it.
        shown: Its meaning for people: a name, a month, a period.
        filters: The condition.
    """

    kind: ImpliedKind
    text: str
    shown: str
    filters: RetrievalFilters

    def to_json(self) -> dict[str, str]:
        """Return the camelCase form."""
        return {"kind": self.kind.value, "text": self.text, "value": self.shown}


@dataclass(frozen=True, slots=True)
class Reading:
    """A question as it is searched.

    Attributes:
        question: As it was asked.
        searched: The text that is searched.
        intent: See `core.question_reading.QuestionSigns`.
        filters: The caller's conditions with the implied ones.
        implied: The conditions that the question names; not those that were revoked.
        files: The notes of each file that it names, if it names several; each is searched.
        carried: The words carried over from earlier turns.
        expansions: The expansions of its abbreviations.
        notes: Messages about it for people.
    """

    question: str
    searched: str
    intent: str
    complexity: Complexity
    filters: RetrievalFilters | None = None
    implied: tuple[Implied, ...] = ()
    files: tuple[tuple[UUID, ...], ...] = ()
    carried: tuple[str, ...] = ()
    expansions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def asks_back(self) -> bool:
        """Whether the reader is asked back, because nothing says what the question is about."""
        return self.intent == CLARIFICATION

    def only_names_a_note(self, language: str) -> bool:
        """Whether the question names a note or a file and asks nothing of it.

        As in "the minutes of March": every word besides says nothing.
        """
        rest = self._besides_notes()
        return rest is not None and says_nothing(rest, language)

    def asks_what_a_note_says(self, language: str) -> bool:
        """Whether the question names a note or a file and asks only what it says.

        As in "what was decided in the minutes of March?".
        """
        rest = self._besides_notes()
        return rest is not None and asks_for_contents(rest, language)

    def _besides_notes(self) -> str | None:
        """Return the question without the notes and files that it names; None if it names none."""
        named = [own for own in self.implied if own.kind in (ImpliedKind.TITLE, ImpliedKind.FILE)]
        rest = " ".join(fold(self.searched).split())
        for own in named:
            rest = rest.replace(fold(own.text), " ")
        return rest if named else None

    def besides_periods(self, language: str) -> str:
        """Return what is searched without the periods that it names; all if it names nothing else.

        All passages lie in them, so that their words do not tell which sentence answers.
        """
        rest = self.searched
        for own in self.implied:
            if own.kind is ImpliedKind.PERIOD:
                for period in own.text.split(", "):
                    rest = re.sub(rf"\s*{re.escape(period)}", "", rest, flags=re.IGNORECASE)
        return self.searched if says_nothing(rest, language) else rest

    def without_implied(self, filters: RetrievalFilters | None, note: str) -> "Reading":
        """Return it with the caller's conditions only, and a note that says why."""
        return replace(self, filters=filters, implied=(), files=(), notes=(*self.notes, note))

    def reworded(self, render: Callable[[str], str]) -> "Reading":
        """Return it with its messages rendered, for instance in another language."""
        return replace(self, notes=tuple(map(render, self.notes)))

    @property
    def told(self) -> tuple[str, ...]:
        """The messages for people: what was searched instead, under which conditions, and notes."""
        carried = Message.ASKED_CARRIED.format(searched=self.searched)
        return (
            *((carried,) if self.searched != self.question else ()),
            *(Message.ASKED_ONLY.format(value=own.shown, text=own.text) for own in self.implied),
            *self.notes,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form."""
        return {
            "searched": self.searched,
            "intent": self.intent,
            "complexity": self.complexity.value,
            "implied": [own.to_json() for own in self.implied],
            "carried": list(self.carried),
            "expansions": dict(self.expansions),
            "notes": list(self.notes),
        }
