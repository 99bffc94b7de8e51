"""Public question sets in the forms of SQuAD, BEIR and TREC, and runs in TREC's.

Measuring configurations on them belongs in `evaluation.bench`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import BaseModel, ValidationError

from rag_resources.core.errors import (
    InvalidGoldenDatasetError,
    InvalidSourceError,
    unreadable,
)
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_places import GoldenPlace
from rag_resources.core.text import is_blank, normalize_query
from rag_resources.core.types import NoteRecord
from rag_resources.core.validation import describe_problems
from rag_resources.languages.messages import _
from rag_resources.store.notes import note_id

PARAGRAPH_BREAK = "\n\n"
NO_ANSWER = "–"

_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_DIFFICULTY = 3
_QRELS = ("qrels/test.tsv", "qrels/dev.tsv", "qrels.tsv", "qrels.txt", "qrels")


@dataclass(frozen=True, slots=True)
class SetQuestion:
    """A question of a set.

    Attributes:
        notes: The external ids of the notes that answer it.
        places: What answers it in those notes, if the set says so: a note's external id, an offset
            and the text there.
    """

    query_id: str
    query: str
    notes: tuple[str, ...]
    places: tuple[tuple[str, int, str], ...] = ()

    @property
    def golden_id(self) -> UUID:
        """Its id as a golden question, the same every time."""
        return uuid5(NAMESPACE_URL, self.query_id)

    def entry(self, tenant: str, source: str) -> GoldenEntry:
        """Return it as a golden question about stored notes."""
        ids = {note: note_id(tenant, source, note) for note in self.notes}
        return GoldenEntry(
            query=self.query,
            relevant_note_ids=tuple(ids.values()),
            expected_answer=self.places[0][2] if self.places else NO_ANSWER,
            category="factual",
            difficulty=_DIFFICULTY,
            golden_id=self.golden_id,
            places=tuple(
                GoldenPlace(ids[note], start, start + len(text), text)
                for note, start, text in self.places
            ),
        )


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The notes of a set and the questions about them, each once."""

    notes: list[NoteRecord]
    questions: list[SetQuestion]


def read_question_set(
    path: Path, *, paragraphs_per_note: int = 1, questions: int | None = None
) -> QuestionSet:
    """Read a set.

    Args:
        path: A file in the format of SQuAD, or a folder in that of BEIR or TREC: `corpus.jsonl` or
            `corpus.tsv`, `queries.jsonl` or `queries.tsv`, and the judgements in `qrels/test.tsv`,
            `qrels.tsv` or `qrels.txt`. Every grade above 0 counts as relevant; a question
            without an answer is left out.
        paragraphs_per_note: How many consecutive paragraphs of an article of SQuAD make a note.
        questions: How many to draw, the same every time; None takes all.

    Raises:
        InvalidSourceError: It cannot be read.
        InvalidGoldenDatasetError: It has none of these forms, or no question with an answer.
    """
    try:
        if path.is_dir():
            notes, asked = _read_folder(path)
        else:
            notes, asked = _read_squad(path, paragraphs_per_note)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSourceError(unreadable(path, error)) from error
    except ValidationError as error:
        raise _invalid(path, describe_problems(error)) from error
    except (ValueError, KeyError, TypeError) as error:  # of a broken JSON file or table
        raise _invalid(path, [str(error)]) from error
    found: dict[str, SetQuestion] = {}
    for one in asked:  # A question that is asked twice is answered by all that is given for it.
        first = found.setdefault(normalize_query(one.query), one)
        if first is not one:
            found[normalize_query(one.query)] = replace(
                first,
                notes=tuple(dict.fromkeys((*first.notes, *one.notes))),
                places=(*first.places, *one.places),
            )
    if not found:
        raise _invalid(path, [_("it has no question with an answer in its texts")])
    drawn = list(found.values())
    if questions is not None and questions < len(drawn):
        drawn = sorted(drawn, key=lambda each: each.golden_id)[:questions]  # its id is a hash
    return QuestionSet(notes, drawn)


def read_run(path: Path, dataset: QuestionSet) -> dict[UUID, tuple[str, ...]]:
    """Return what a run in TREC's format found, best first, by golden id.

    Order is by score, ties by descending document, as in trec_eval.

    Raises:
        InvalidSourceError: The file cannot be read.
        InvalidGoldenDatasetError: It is no run, or answers no question of the set.
    """
    ranked: dict[str, list[tuple[float, str]]] = {}
    try:
        for line in filter(str.strip, path.read_text("utf-8").splitlines()):
            query, _zero, document, _rank, score, *_tag = line.split()
            ranked.setdefault(query, []).append((float(score), document))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSourceError(unreadable(path, error)) from error
    except ValueError as error:
        raise _invalid(path, [str(error)]) from error
    found = {
        each.golden_id: tuple(name for _score, name in sorted(own, reverse=True))
        for each in dataset.questions
        if (own := ranked.get(each.query_id))
    }
    if not found:
        raise _invalid(path, [_("it answers no question of the set")])
    return found


def run_lines(rankings: Mapping[str, Sequence[str]], tag: str) -> Iterator[str]:
    """Yield the lines of a run in TREC's format.

    Args:
        rankings: The documents that were found, best first, by question.
        tag: What found them.
    """
    for query, documents in rankings.items():
        for rank, document in enumerate(documents, start=1):
            yield f"{query} Q0 {document} {rank} {1 / rank:.6f} {tag}\n"


def _invalid(path: Path, problems: Sequence[str]) -> InvalidGoldenDatasetError:
    return InvalidGoldenDatasetError(
        _("{path} is not a set of questions in the form of SQuAD, BEIR or TREC:").format(path=path),
        list(problems),
    )


class _Answer(BaseModel):
    text: str
    answer_start: int


class _Asked(BaseModel):
    id: str
    question: str
    answers: list[_Answer]


class _Paragraph(BaseModel):
    context: str
    qas: list[_Asked]


class _Article(BaseModel):
    title: str = ""
    paragraphs: list[_Paragraph]


class _Squad(BaseModel):
    data: list[_Article]


def _read_squad(
    path: Path, paragraphs_per_note: int
) -> tuple[list[NoteRecord], Iterator[SetQuestion]]:
    notes: list[NoteRecord] = []
    asked: list[SetQuestion] = []
    for number, article in enumerate(_Squad.model_validate_json(path.read_bytes()).data):
        for first in range(0, len(article.paragraphs), paragraphs_per_note):
            name = f"{number}-{first // paragraphs_per_note}"
            joined = article.paragraphs[first : first + paragraphs_per_note]
            content = PARAGRAPH_BREAK.join(each.context for each in joined)
            notes.append(NoteRecord(name, article.title, content, _DAY))
            asked += _questions(joined, name)
    return notes, iter(asked)


def _questions(paragraphs: list[_Paragraph], note: str) -> Iterator[SetQuestion]:
    start = 0
    for paragraph in paragraphs:
        for question in paragraph.qas:
            for answer in question.answers[:1]:
                place = (note, start + answer.answer_start, answer.text)
                yield SetQuestion(question.id, question.question, (note,), (place,))
        start += len(paragraph.context) + len(PARAGRAPH_BREAK)


def _read_folder(folder: Path) -> tuple[list[NoteRecord], Iterator[SetQuestion]]:
    notes = [
        NoteRecord(name, title, text or title, _DAY)
        for name, title, text in _texts(folder, "corpus")
        if not is_blank(text or title)
    ]
    known = {note.external_id for note in notes}
    relevant: dict[str, list[str]] = {}
    path = next((folder / name for name in _QRELS if (folder / name).is_file()), folder / _QRELS[0])
    for line in path.read_text("utf-8").splitlines():
        query, *middle, grade = line.split()
        if grade.lstrip("-").replace(".", "").isdigit() and float(grade) > 0:
            relevant.setdefault(query, []).append(middle[-1])
    return notes, (
        SetQuestion(name, text, tuple(found))
        for name, _title, text in _texts(folder, "queries")
        if (found := [each for each in relevant.get(name, ()) if each in known])
    )


def _texts(folder: Path, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield id, title and text of each line of `NAME.jsonl`, or of `NAME.tsv` without a header."""
    path = folder / f"{name}.jsonl"
    if not path.exists():
        path = folder / f"{name}.tsv"
    with path.open(encoding="utf-8") as lines:
        for line in filter(str.strip, lines):
            if path.suffix == ".jsonl":
                row: dict[str, Any] = json.loads(line)
                yield str(row["_id"]), str(row.get("title") or ""), str(row["text"])
            else:
                first, *middle, text = line.rstrip("\n").split("\t")
                yield first, " ".join(middle), text
