"""Question sets in SQuAD's JSON: paragraphs become notes, questions become golden questions."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_places import GoldenPlace
from rag_resources.core.text import normalize_query
from rag_resources.core.types import NoteRecord
from rag_resources.store.notes import note_id

PARAGRAPH_BREAK = "\n\n"

_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_DIFFICULTY = 3
_SEED = 0


@dataclass(frozen=True, slots=True)
class SquadQuestion:
    """A question; `places` answer it: a note's external id, an offset and the text there."""

    query: str
    places: tuple[tuple[str, int, str], ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """The external ids of the notes that answer it."""
        return tuple(dict.fromkeys(note for note, _, _ in self.places))

    def entry(self, tenant: str, source: str) -> GoldenEntry:
        """Return it as a golden question about stored notes."""
        ids = {note: note_id(tenant, source, note) for note in self.notes}
        return GoldenEntry(
            query=self.query,
            relevant_note_ids=tuple(ids.values()),
            expected_answer=self.places[0][2],
            category="factual",
            difficulty=_DIFFICULTY,
            places=tuple(
                GoldenPlace(ids[note], start, start + len(text), text)
                for note, start, text in self.places
            ),
        )


@dataclass(frozen=True, slots=True)
class SquadSet:
    """The notes of a file and the questions about them, each once."""

    notes: list[NoteRecord]
    questions: list[SquadQuestion]


def read_squad(path: Path, *, paragraphs_per_note: int, questions: int | None = None) -> SquadSet:
    """Read a file, which is taken to be right.

    Args:
        path: In the format of SQuAD; a question without an answer is left out.
        paragraphs_per_note: How many consecutive paragraphs of an article make a note.
        questions: How many to draw, the same every time; None takes all.
    """
    notes: list[NoteRecord] = []
    asked: dict[str, SquadQuestion] = {}
    for number, article in enumerate(json.loads(path.read_text("utf-8"))["data"]):
        paragraphs = article["paragraphs"]
        for first in range(0, len(paragraphs), paragraphs_per_note):
            name = f"{number}-{first // paragraphs_per_note}"
            joined = paragraphs[first : first + paragraphs_per_note]
            content = PARAGRAPH_BREAK.join(each["context"] for each in joined)
            notes.append(NoteRecord(name, article.get("title", ""), content, _DAY))
            for question in _questions(joined, name):
                key = normalize_query(question.query)
                places = (*(asked[key].places if key in asked else ()), *question.places)
                asked[key] = replace(asked.get(key, question), places=places)
    found = list(asked.values())
    if questions is not None and questions < len(found):
        drawn = sorted(random.Random(_SEED).sample(range(len(found)), questions))
        found = [found[place] for place in drawn]
    return SquadSet(notes, found)


def _questions(paragraphs: list[dict[str, Any]], note: str) -> Iterator[SquadQuestion]:
    start = 0
    for paragraph in paragraphs:
        for question in paragraph["qas"]:
            for answer in question["answers"][:1]:
                place = (note, start + answer["answer_start"], answer["text"])
                yield SquadQuestion(question["question"], (place,))
        start += len(paragraph["context"]) + len(PARAGRAPH_BREAK)
