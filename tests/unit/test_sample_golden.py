"""The sample's large golden set: its form, its places in the notes, its halves, its wording.

What any golden file may hold is tested in `test_golden`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import rag_assets
from rag_resources.core.golden import CATEGORIES, DIFFICULTIES, parse_golden
from rag_resources.core.text import normalize_query
from rag_resources.core.types import NoteRecord
from rag_resources.ingestion.sources import iter_source
from tests.strategies import uuid_number

SAMPLE = Path(rag_assets.__file__).parent / "sample"
ADDED = "2026-11"
ORIGINAL = "original"
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
