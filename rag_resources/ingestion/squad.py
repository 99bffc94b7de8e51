"""Reads question sets in SQuAD's JSON: articles become notes, questions become golden questions.

A file is one JSON document and is loaded whole, unlike the other formats. `golden.files` makes
golden entries from the questions.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.messages import Message
from rag_resources.core.quoting import shown
from rag_resources.core.text import is_blank, normalize_query
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.ingestion.field_values import clean_text
from rag_resources.ingestion.jsonl import load_json
from rag_resources.ingestion.records import build_note
from rag_resources.ingestion.source_file import (
    InvalidRecordError,
    SourceFile,
    SourceOptions,
    require_at_least,
)
from rag_resources.ingestion.text_files import BOM, NUL, read_text

MAX_FILE_BYTES = 512 * 1024 * 1024
PARAGRAPH_BREAK = "\n\n"


@dataclass(frozen=True, slots=True)
class SquadQuestion:
    """A question of a SQuAD file.

    Attributes:
        query: The question.
        answer: The text of the answer in the first of its notes.
        note_external_ids: The notes that answer it, without repeats; several if several paragraphs
            have the same question.
        places: Where the notes answer it; the given answer comes first.
    """

    query: str
    answer: str
    note_external_ids: tuple[str, ...]
    places: tuple["SquadPlace", ...]


@dataclass(frozen=True, slots=True)
class SquadPlace:
    """The place of an answer: `note.content[start : start + len(text)] == text`."""

    note_external_id: str
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class SquadDataset:
    """The notes and questions of a SQuAD file, and the entries that were rejected."""

    notes: list[NoteRecord]
    questions: list[SquadQuestion]
    rejected: list[RejectedRecord]


@dataclass(frozen=True, slots=True)
class _Passage:
    """A paragraph; `context` is without the characters that a note cannot have.

    Attributes:
        place: Its path in the document, such as `data[0].paragraphs[2]`.
        original: The context that the file's offsets refer to.
        start: Its offset in the note.
        questions: The `qas` of the file, not yet parsed.
    """

    place: str
    original: str
    context: str
    start: int
    questions: Any


@dataclass(frozen=True, slots=True)
class _Group:
    """Consecutive paragraphs that make one note."""

    external_id: str
    title: Any
    passages: list[_Passage]


def read_squad_notes(
    file: SourceFile, options: SourceOptions
) -> Iterator[NoteRecord | RejectedRecord]:
    """Yield the notes of a SQuAD file; any other JSON document gives one rejection.

    External ids are `<article>-<group>`, counted from 0. In a folder the file's name comes first,
    so that two files never share an id. Byte order marks inside the text are removed.
    """
    try:
        articles = _load_articles(file)
    except InvalidRecordError as error:
        yield error.rejected(file.name)
        return
    for group in _groups(articles, file, options.paragraphs_per_note):
        yield group if isinstance(group, RejectedRecord) else _note(group, file, options)


def read_squad(
    path: Path, *, paragraphs_per_note: int, questions: int | None, seed: int
) -> SquadDataset:
    """Read a SQuAD file as notes and questions.

    The notes are the same that `sources.iter_source` gives for the file. Questions that are equal
    after `core.text.normalize_query` are merged, with all their notes. A question without an
    answer, or whose answer is not at the given offset, is rejected.

    Args:
        path: The file.
        paragraphs_per_note: How many consecutive paragraphs of an article make a note, >= 1.
        questions: How many to draw, >= 0, kept in file order; None, or too many, takes all.
        seed: Seed of the random draw.

    Raises:
        InvalidSourceError: The file cannot be read or is not SQuAD.
        InvalidParameterError: A number is out of range.
    """
    options = SourceOptions(paragraphs_per_note=paragraphs_per_note)
    require_at_least(0, "questions", questions or 0)
    try:
        file = SourceFile.at(path, path.name, is_source=True)
        articles = _load_articles(file)
    except OSError as error:
        message = Message.SOURCE_UNREADABLE.format(path=path)
        raise InvalidSourceError(message, path=str(path)) from error
    except InvalidRecordError as error:
        raise InvalidSourceError(f"{shown(path)}: {error.message}", path=str(path)) from error
    dataset = SquadDataset([], [], [])
    for group in _groups(articles, file, paragraphs_per_note):
        if isinstance(group, RejectedRecord):
            dataset.rejected.append(group)
        else:
            _add(group, dataset, file, options)
    merged = _merge(dataset.questions)
    return replace(dataset, questions=_draw(merged, questions, seed))


def _add(group: _Group, dataset: SquadDataset, file: SourceFile, options: SourceOptions) -> None:
    note = _note(group, file, options)
    if isinstance(note, RejectedRecord):
        dataset.rejected.append(note)
        return
    dataset.notes.append(note)
    for question in _questions(group, note, file.name):
        if isinstance(question, RejectedRecord):
            dataset.rejected.append(question)
        else:
            dataset.questions.append(question)


def _load_articles(file: SourceFile) -> list[Any]:
    document = load_json(read_text(file.path, max_bytes=MAX_FILE_BYTES))
    articles = document.get("data") if isinstance(document, dict) else None
    if not isinstance(articles, list) or not any(
        isinstance(article, dict) and isinstance(article.get("paragraphs"), list)
        for article in articles
    ):
        raise InvalidRecordError(Message.SQUAD_SHAPE)
    return articles


def _groups(
    articles: Sequence[Any], file: SourceFile, paragraphs_per_note: int
) -> Iterator[_Group | RejectedRecord]:
    prefix = "" if file.is_source else f"{file.name_without_suffix}/"
    for article_index, article in enumerate(articles):
        place = f"data[{article_index}]"
        paragraphs = article.get("paragraphs") if isinstance(article, dict) else None
        if not isinstance(paragraphs, list):
            yield _missing(f"{place}.paragraphs").rejected(file.name)
            continue
        for first in range(0, len(paragraphs), paragraphs_per_note):
            passages: list[_Passage] = []
            last = min(first + paragraphs_per_note, len(paragraphs))
            for index in range(first, last):
                try:
                    _append(passages, paragraphs[index], f"{place}.paragraphs[{index}]")
                except InvalidRecordError as error:
                    yield error.rejected(file.name)
            if passages:
                external_id = f"{prefix}{article_index}-{first // paragraphs_per_note}"
                yield _Group(external_id, article.get("title") or "", passages)


def _append(passages: list[_Passage], paragraph: Any, place: str) -> None:
    field = f"{place}.context"
    original = paragraph.get("context") if isinstance(paragraph, dict) else None
    if not isinstance(original, str):
        raise _missing(field)
    context = _cleaned(original, field)
    if is_blank(context):
        raise InvalidRecordError(Message.RECORD_BLANK.format(field=field), field=field)
    start = 0
    if passages:
        start = passages[-1].start + len(passages[-1].context) + len(PARAGRAPH_BREAK)
    passages.append(_Passage(place, original, context, start, paragraph.get("qas")))


def _cleaned(text: str, field: str) -> str:
    return clean_text(text, field=field).replace(BOM, "")


def _note(group: _Group, file: SourceFile, options: SourceOptions) -> NoteRecord | RejectedRecord:
    try:
        return build_note(
            {"title": group.title},
            file=file,
            location=file.name,
            max_bytes=options.max_note_bytes,
            content=PARAGRAPH_BREAK.join(passage.context for passage in group.passages),
            default_id=group.external_id,
            nul_characters=sum(passage.original.count(NUL) for passage in group.passages),
        )
    except InvalidRecordError as error:
        return error.rejected(f"{file.name} ({group.passages[0].place})")


def _questions(
    group: _Group, note: NoteRecord, location: str
) -> Iterator[SquadQuestion | RejectedRecord]:
    for passage in group.passages:
        field = f"{passage.place}.qas"
        questions = [] if passage.questions is None else passage.questions
        if not isinstance(questions, list):
            yield _missing(field).rejected(location)
            continue
        for index, question in enumerate(questions):
            try:
                yield _question(question, f"{field}[{index}]", passage, note)
            except InvalidRecordError as error:
                yield error.rejected(location)


def _question(raw: Any, place: str, passage: _Passage, note: NoteRecord) -> SquadQuestion:
    query = raw.get("question") if isinstance(raw, dict) else None
    if not isinstance(query, str) or is_blank(cleaned := _cleaned(query, f"{place}.question")):
        raise _missing(f"{place}.question")
    answers = raw.get("answers")
    if not isinstance(answers, list) or not answers:
        raise InvalidRecordError(Message.SQUAD_NO_ANSWER.format(field=place), question=query)
    for answer in answers:
        located = _locate(answer, passage, note.content)
        if located:
            text, start = located
            at = SquadPlace(note.external_id, start, text)
            return SquadQuestion(cleaned, text, (note.external_id,), (at,))
    raise InvalidRecordError(
        Message.SQUAD_ANSWER_OFFSET.format(field=place, answer=shown(_text_of(answers[0]))),
        question=query,
    )


def _locate(answer: Any, passage: _Passage, content: str) -> tuple[str, int] | None:
    """Return an answer and its offset in the note; None if it is not where the file says."""
    if not isinstance(answer, dict):
        return None
    text, start = answer.get("text"), answer.get("answer_start")
    if not isinstance(text, str) or not isinstance(start, int) or start < 0:
        return None
    text = text.replace(BOM, "").replace(NUL, "")
    before = passage.original[:start]
    moved = passage.start + start - before.count(BOM) - before.count(NUL)
    if is_blank(text) or content[moved : moved + len(text)] != text:
        return None
    return text, moved


def _text_of(answer: Any) -> Any:
    return answer.get("text") if isinstance(answer, dict) else answer


def _missing(field: str) -> InvalidRecordError:
    return InvalidRecordError(Message.SQUAD_FIELD.format(field=field), field=field)


def _merge(questions: Sequence[SquadQuestion]) -> list[SquadQuestion]:
    """Merge questions that are the same, with all their notes and places."""
    merged: dict[str, SquadQuestion] = {}
    for question in questions:
        first = merged.setdefault(normalize_query(question.query), question)
        notes = dict.fromkeys(first.note_external_ids + question.note_external_ids)
        places = dict.fromkeys(first.places + question.places)
        merged[normalize_query(question.query)] = replace(
            first, note_external_ids=tuple(notes), places=tuple(places)
        )
    return list(merged.values())


def _draw(questions: list[SquadQuestion], count: int | None, seed: int) -> list[SquadQuestion]:
    if count is None or count >= len(questions):
        return questions
    drawn = random.Random(seed).sample(range(len(questions)), count)  # noqa: S311 - not a secret
    return [questions[index] for index in sorted(drawn)]
