"""Answers with citations: ranges of notes that a reader can open and check. Property 47.

Answers without notes are in `core.answers`; citing the notes of passages belongs in
`answers.citing`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from rag_resources.core.note_labels import note_label
from rag_resources.core.places import DocumentPlace


@dataclass(frozen=True, slots=True)
class Citation:
    """A range of a note that supports a sentence.

    Attributes:
        start: Offset into the note's content, in code points.
        end: After the last character; greater than `start`.
        content_sha256: Hash of the note's whole content when it was cited.
        external_id: As in `core.types.Note`.
        place: Where the range is in its document; None if the note is not a section of one.
        quote_start: Where the block begins that is quoted with the range; see `quotation.Quote`.
        quote_end: After its last character.
        prefix: What the block shows before the range.
        suffix: What it shows after it.
        columns: If the range is in a row of a table, the names of its columns.

    Source of the names `prefix` and `suffix`: W3C, "Web Annotation Data Model", 2017, 4.2.4.
    """

    note_id: UUID
    start: int
    end: int
    content_sha256: bytes
    title: str = ""
    external_id: str = ""
    created_at: datetime | None = None
    place: DocumentPlace | None = None
    # One range is one citation, whichever passage it was found in.
    quote_start: int = field(default=0, compare=False)
    quote_end: int = field(default=0, compare=False)
    prefix: str = field(default="", compare=False)
    suffix: str = field(default="", compare=False)
    columns: str = field(default="", compare=False)

    @property
    def label(self) -> str:
        """What people are shown of the note."""
        return note_label(self.title, self.external_id, self.note_id)

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form."""
        return {
            "noteId": str(self.note_id),
            "externalId": self.external_id,
            "start": self.start,
            "end": self.end,
            "contentSha256": self.content_sha256.hex(),
            "title": self.title,
            "createdAt": self.created_at.isoformat() if self.created_at else None,
            "place": self.place.to_json() if self.place else None,
            "quoteStart": self.quote_start,
            "quoteEnd": self.quote_end,
            "prefix": self.prefix,
            "suffix": self.suffix,
            "columns": self.columns,
        }


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """A sentence of an answer with its citations, at least one.

    Attributes:
        is_quotation: Whether it was copied from the note.
    """

    text: str
    citations: tuple[Citation, ...]
    is_quotation: bool = False

    @property
    def marked(self) -> str:
        """The quoted block with the sentence between `**`; a sentence that is its own as it is."""
        first = self.citations[0]
        if not self.is_quotation or not (first.prefix or first.suffix):
            return self.text
        return "\n".join(filter(None, (first.prefix, f"**{self.text}**", first.suffix)))

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form."""
        return {
            "text": self.text,
            "citations": [own.to_json() for own in self.citations],
            "quotation": self.is_quotation,
        }


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """An answer as it is shown.

    Attributes:
        sentences: In reading order; none if nothing was found.
        answerer: Name and version of the answerer.
        notice: The message shown instead of sentences; empty if there are some.
    """

    question: str
    sentences: tuple[AnswerSentence, ...]
    answerer: str
    notice: str = ""

    @property
    def found(self) -> bool:
        """Whether the notes contain an answer."""
        return bool(self.sentences)

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form of the command line."""
        return {
            "question": self.question,
            "found": self.found,
            "sentences": [own.to_json() for own in self.sentences],
            "answerer": self.answerer,
            "notice": self.notice or None,
        }


def numbered(sentences: Sequence[AnswerSentence]) -> dict[Citation, int]:
    """Number the citations of an answer from 1, each once, in reading order."""
    cited = dict.fromkeys(own for sentence in sentences for own in sentence.citations)
    return {citation: number for number, citation in enumerate(cited, start=1)}
