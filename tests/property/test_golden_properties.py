"""Properties 30, 32 and the pure part of 33: what a golden dataset may hold, and its round trip."""

import json
import re
import unicodedata
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.golden import GoldenEntry, golden_hash, parse_golden
from tests.strategies import golden_datasets, golden_entries, golden_note_content

CATEGORIES = {"factual", "causal", "temporal", "comparative", "multi-part"}
MISSING = UUID(int=0)
LONE_SURROGATE = "a\ud800"

WRONG: dict[str, list[Any]] = {
    "query": [None, "", " \r\n\t", 7, ["¿Qué?"], "a\0b", LONE_SURROGATE],
    "relevantNoteIds": [None, [], "nota", [str(MISSING)], [None], {"a": 1}],
    "expectedAnswer": [None, "", "\u00a0\n", 3, "\0", LONE_SURROGATE],
    "category": [None, "", "Factual", "otra", ["factual"], 1],
    "difficulty": [None, 0, 6, -1, 2.0, 2.5, "3", True],
    "tags": ["etiqueta", [1], {"a": 1}, ["a\0"], [LONE_SURROGATE]],
    "id": ["no-es-uuid", 12, ""],
    "createdAt": ["ayer", "2024-05-01T10:00:00", 20240501, ""],
    "places": [
        *("aquí", {"note": "a"}, [7], [{"text": "a"}], [{"note": str(MISSING), "text": "a"}]),
        *([{"note": 1, "start": 0}], [{"note": 1, "start": -1, "end": 2}]),
    ],
    "updatedAt": ["2024-13-01T00:00:00+00:00", "2024-05-01"],
}
"""Values an entry must not have in a field."""


def resolve(name: str) -> UUID | None:
    """Know every note but one, by its id."""
    try:
        note_id = UUID(name)
    except ValueError:
        return None
    return None if note_id == MISSING else note_id


def parse(raw: Any) -> list[GoldenEntry]:
    return parse_golden(
        raw, origin="oro.json", resolve_note=resolve, content_of=golden_note_content
    )


def exported(entries: list[GoldenEntry]) -> list[dict[str, Any]]:
    """Return what a file gives back."""
    rows: list[dict[str, Any]] = json.loads(json.dumps([entry.to_json() for entry in entries]))
    return rows


def bad_positions(error: InvalidGoldenDatasetError) -> list[int]:
    found = [re.match(r"entrada (\d+)[: ]", problem) for problem in error.problems]
    assert all(found)
    return sorted({int(match[1]) for match in found if match})


@st.composite
def perhaps_wrong_rows(draw: st.DrawFn) -> tuple[dict[str, Any], set[str]]:
    """An exported entry with some fields made wrong, and which."""
    (row,) = exported([draw(golden_entries())])
    wrong = draw(st.sets(st.sampled_from(sorted(WRONG)), max_size=3))
    for field in wrong:
        row[field] = draw(st.sampled_from(WRONG[field]), label=field)
    return row, wrong


@given(perhaps_wrong_rows())
def test_property_30_every_accepted_entry_is_complete(
    case: tuple[dict[str, Any], set[str]],
) -> None:
    row, wrong = case
    if wrong:
        with pytest.raises(InvalidGoldenDatasetError) as caught:
            parse([row])
        if "relevantNoteIds" in wrong and isinstance(row.get("places"), list):
            wrong -= {"places"}  # Nobody can say of which notes they are.
        assert len(caught.value.problems) == len(wrong)
        return
    (entry,) = parse({"entries": [row]})
    assert entry.query.strip()
    assert entry.expected_answer.strip()
    assert len(entry.relevant_note_ids) >= 1
    assert MISSING not in entry.relevant_note_ids
    assert entry.category in CATEGORIES
    assert entry.difficulty in {1, 2, 3, 4, 5}


SPACES = st.text(" \t\r\n\u00a0\u2003", min_size=1, max_size=3)


@st.composite
def same_questions(draw: st.DrawFn) -> tuple[str, str]:
    """Two spellings of one question: other case, composition and white space."""
    words = draw(st.lists(st.text("aábñüeéxSs¿?1", min_size=1, max_size=5), min_size=1, max_size=5))
    case = st.sampled_from([str.lower, str.upper, str.title, str])
    form = st.sampled_from(["NFC", "NFD"])

    def spelled() -> str:
        text = draw(st.sampled_from(["", " ", "\n"]))
        text += "".join(draw(case)(word) + draw(SPACES) for word in words)
        return unicodedata.normalize(draw(form), text)

    return spelled(), spelled()


@given(golden_datasets(max_size=3), golden_entries(), same_questions(), st.data())
def test_property_32_no_two_entries_ask_the_same(
    others: list[GoldenEntry],
    entry: GoldenEntry,
    questions: tuple[str, str],
    data: st.DataObject,
) -> None:
    rows = exported(others)
    row = exported([entry])[0] | {"id": None}
    first, second = (row | {"query": "P1 " + question} for question in questions)
    early = data.draw(st.integers(0, len(rows)))
    late = data.draw(st.integers(early + 1, len(rows) + 1))
    with_first = [*rows[:early], first, *rows[early:]]
    assert len(parse(with_first)) == len(with_first)
    with pytest.raises(InvalidGoldenDatasetError) as caught:
        parse([*with_first[:late], second, *with_first[late:]])
    assert bad_positions(caught.value) == [late + 1]
    assert f": {early + 1} (" in caught.value.problems[0].split("»): ")[-1]


@given(golden_datasets(min_size=1), st.data())
def test_property_33_export_then_import_is_the_identity_and_each_bad_entry_is_named(
    entries: list[GoldenEntry], data: st.DataObject
) -> None:
    rows = exported(entries)
    assert parse(rows) == entries
    assert parse({"entries": rows}) == entries
    assert golden_hash(parse(rows)) == golden_hash(entries[::-1])

    bad = data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1))
    for place in bad:
        field = data.draw(st.sampled_from(sorted(WRONG)))
        whole = data.draw(st.booleans())
        wrong = data.draw(st.sampled_from(WRONG[field]))
        rows[place] = rows[place] | {field: wrong} if whole else data.draw(not_objects())
    with pytest.raises(InvalidGoldenDatasetError) as caught:
        parse(rows)
    assert bad_positions(caught.value) == sorted(place + 1 for place in bad)
    assert "oro.json" in caught.value.message


def not_objects() -> st.SearchStrategy[Any]:
    return st.sampled_from([None, [], "¿Qué?", 3, ["query"]])
