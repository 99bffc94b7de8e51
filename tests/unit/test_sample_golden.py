"""The sample's large golden set: its form, its places in the notes, its halves, its wording.

What any golden file may hold is tested in `test_golden`.
"""

import hashlib
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import rag_assets
from rag_resources.core.golden import CATEGORIES, DIFFICULTIES, parse_golden
from rag_resources.core.text import normalize_query
from rag_resources.core.types import NoteRecord
from rag_resources.core.wording import content
from rag_resources.ingestion.sources import iter_source
from tests.strategies import uuid_number

SAMPLE = Path(rag_assets.__file__).parent / "sample"
ADDED = "2026-11"
ORIGINAL = "original"
HALVES = {"half:experiment", "half:report"}
HOPS = {"hops:single", "hops:multi"}

Row = dict[str, Any]


@cache
def notes() -> dict[str, NoteRecord]:
    """The notes of the sample as ingestion stores them, by external id."""
    records = [note for note in iter_source(SAMPLE / "notes") if isinstance(note, NoteRecord)]
    return {note.external_id: note for note in records}


@cache
def rows(name: str) -> list[Row]:
    return list(json.loads((SAMPLE / name).read_text("utf-8"))["entries"])


def answerable() -> list[Row]:
    return rows("golden-400.json")


def unanswerable() -> list[Row]:
    return rows("unanswerable.json")


def tagged(*tags: str) -> list[Row]:
    return [row for row in answerable() if set(tags) <= set(row["tags"])]


def half_of(text: str) -> str:
    """The half of a first note's external id, or of an unanswerable question."""
    even = hashlib.sha256(text.encode()).digest()[0] % 2 == 0
    return "half:experiment" if even else "half:report"


@cache
def words_of(name: str) -> frozenset[str]:
    note = notes()[name]
    return content(f"{note.title}\n{note.content}")


def shared_words(row: Row) -> float:
    """Share of a question's content words that its notes also have, titles included."""
    words = content(row["query"])
    said = frozenset().union(*(words_of(name) for name in row["relevantNotes"]))
    return len(words & said) / len(words)


def test_the_importer_reads_every_question() -> None:
    """It also refuses repeated questions, unknown notes, and places that are not in their note."""
    ids = {name: uuid_number(number) for number, name in enumerate(notes(), start=1)}
    contents = {note_id: notes()[name].content for name, note_id in ids.items()}
    read = parse_golden(
        {"entries": answerable()},
        origin="golden-400.json",
        resolve_note=ids.get,
        content_of=contents.__getitem__,
    )
    assert len(read) == len(answerable()) >= 400
    assert [len(entry.places) for entry in read] == [len(row["places"]) for row in answerable()]


def test_the_original_questions_stand_word_for_word() -> None:
    originals = [
        {name: row[name] for name in row if name not in ("places", "tags")}
        for row in tagged(ORIGINAL)
    ]
    before = rows("golden.json")
    assert originals == [{name: row[name] for name in row if name != "tags"} for row in before]
    for row, old in zip(tagged(ORIGINAL), before, strict=True):
        kept = [tag for tag in old["tags"] if tag not in HOPS]
        assert row["tags"][: len(kept)] == kept
        assert HOPS & set(row["tags"]) == HOPS & set(old["tags"])


def test_every_place_is_the_notes_text_at_its_range() -> None:
    for row in answerable():
        assert {place["note"] for place in row["places"]} == set(row["relevantNotes"])
        seen: set[tuple[str, int]] = set()
        for place in row["places"]:
            text = notes()[place["note"]].content
            assert text[place["start"] : place["end"]] == place["text"], row["query"]
            assert 10 <= len(place["text"]) <= 350, row["query"]
            taken = {(place["note"], at) for at in range(place["start"], place["end"])}
            assert not taken & seen, row["query"]
            seen |= taken


def test_every_note_answers_a_question() -> None:
    named = {name for row in answerable() for name in row["relevantNotes"]}
    assert named == notes().keys()
    assert len(named) == 260


def test_questions_spread_over_categories_difficulties_hops_and_months() -> None:
    added = tagged(ADDED)
    assert len(added) >= 268
    assert len(added) + len(tagged(ORIGINAL)) == len(answerable())
    assert len(tagged(ADDED, "hops:multi")) >= 80
    assert min(Counter(row["category"] for row in added)[name] for name in CATEGORIES) >= 50
    assert {row["difficulty"] for row in added} == set(DIFFICULTIES)
    months = Counter(row["relevantNotes"][0][:7] for row in added)
    assert len(months) == 24
    assert min(months.values()) >= 10


@pytest.mark.parametrize("group", [HALVES, HOPS], ids=["half", "hops"])
def test_every_question_has_one_tag_of_each_kind(group: set[str]) -> None:
    assert all(len(group & set(row["tags"])) == 1 for row in answerable())


def test_a_question_over_several_notes_names_several() -> None:
    assert all(len(row["relevantNotes"]) > 1 for row in tagged("hops:multi"))


def test_halves_follow_the_first_note() -> None:
    """So all questions about one note are for experiments, or all are for reports."""
    assert all(half_of(row["relevantNotes"][0]) in row["tags"] for row in answerable())
    assert all(half_of(row["query"]) in row["tags"] for row in unanswerable())
    for half in HALVES:
        assert len(tagged(half)) >= 0.4 * len(answerable())


def test_most_added_questions_are_not_in_the_notes_words() -> None:
    """At most three in ten share more than half of their content words with their notes."""
    copied = [row["query"] for row in tagged(ADDED) if shared_words(row) > 0.5]
    assert len(copied) <= 0.3 * len(tagged(ADDED))


def test_unanswerable_questions_say_why_and_repeat_none_that_has_an_answer() -> None:
    fields = {
        "query", "answerable", "reason", "nearNotes", "category", "difficulty", "tags"
    }  # fmt: skip
    assert len(unanswerable()) >= 60
    queries = [normalize_query(row["query"]) for row in answerable() + unanswerable()]
    assert len(set(queries)) == len(queries)
    for row in unanswerable():
        assert row.keys() == fields
        assert row["answerable"] is False
        assert row["reason"].strip()
        assert row["nearNotes"]
        assert notes().keys() >= set(row["nearNotes"])
        assert row["category"] in CATEGORIES
        assert row["difficulty"] in DIFFICULTIES
        assert {ADDED, "sin-respuesta"} <= set(row["tags"])
