"""Every change of the golden dataset is recorded."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_drift import GoldenDrift
from rag_resources.core.golden_places import GoldenPlace
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.golden.dataset import Golden
from rag_resources.settings import load_settings
from rag_resources.store.golden import list_golden, write_golden
from rag_resources.store.golden_review import review_drift
from rag_resources.store.notes import note_id, upsert_notes
from tests.strategies import uuid_number
from tests.waiting import wait_until

TENANT = "default"
NOTES = {name: note_id(TENANT, "diario", name) for name in ("gata", "tren", "huerto")}


@pytest.fixture
def notes(database: Database) -> None:
    """Three notes."""
    write_notes(database, {name: f"La nota de {name}." for name in NOTES})


def write_notes(database: Database, texts: dict[str, str]) -> None:
    written = [
        NoteRecord(name, "", text, datetime(2025, 1, 1, tzinfo=UTC)) for name, text in texts.items()
    ]
    with database.transaction() as connection:
        upsert_notes(connection, written, tenant=TENANT, source="diario")


def entry(query: str, **changes: Any) -> GoldenEntry:
    return replace(GoldenEntry(query, (NOTES["gata"],), "Sí.", "factual", 1), **changes)


def row(query: str, note: str = "gata") -> dict[str, Any]:
    return {
        "query": query,
        "relevantNotes": [note],
        "expectedAnswer": "Sí.",
        "category": "factual",
        "difficulty": 1,
    }


def write(database: Database, entries: Sequence[GoldenEntry], **options: Any) -> None:
    with database.transaction() as connection:
        write_golden(connection, entries, **{"replace": True} | options)


def stored(database: Database) -> list[GoldenEntry]:
    with database.transaction() as connection:
        return list_golden(connection)


def versions(database: Database) -> list[tuple[str, int, int, int]]:
    """Origin of each version, and how many entries it inserted, changed and deleted."""
    with database.transaction() as connection:
        return connection.execute(
            "SELECT min(origin), count(*) FILTER (WHERE old_entry IS NULL) AS inserted, "
            "count(*) FILTER (WHERE old_entry IS NOT NULL AND new_entry IS NOT NULL) AS changed, "
            "count(*) FILTER (WHERE new_entry IS NULL) AS deleted "
            "FROM golden_history GROUP BY version ORDER BY version"
        ).fetchall()


def by_hand(database: Database, *statements: str) -> None:
    """As a person with psql: without `rag`."""
    with database.transaction() as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_transaction_is_a_version(database: Database) -> None:
    """With who and what made it; one that changes nothing makes none."""
    write(database, [entry("¿A?"), entry("¿B?")], origin="oro.json")
    write(database, [entry("¿A?"), entry("¿B?")], origin="otra vez")
    write(database, [entry("¿A?", difficulty=3), entry("¿C?")], origin="nuevo.json")
    assert versions(database) == [("oro.json", 2, 0, 0), ("nuevo.json", 1, 1, 1)]


def test_whoever_changes_the_table_is_recorded(database: Database) -> None:
    """By psql, whole rows or none, and emptied at once too."""
    write(database, [entry(query) for query in ("¿A?", "¿B?", "¿C?")], origin="oro.json")
    by_hand(database, "UPDATE golden_dataset SET difficulty = 5 WHERE query = '¿A?'")
    by_hand(database, "UPDATE golden_dataset SET difficulty = 5 WHERE query = '¿A?'")
    by_hand(
        database,
        "DELETE FROM golden_dataset WHERE query = '¿B?'",
        "UPDATE golden_dataset SET tags = '{x}' WHERE query = '¿A?'",
    )
    by_hand(database, "TRUNCATE golden_dataset")
    assert stored(database) == []
    assert versions(database) == [
        ("oro.json", 3, 0, 0),
        ("", 0, 1, 0),
        ("", 0, 1, 1),
        ("", 0, 0, 2),
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM golden_history",
        "UPDATE golden_history SET origin = 'x'",
        "TRUNCATE golden_history",
    ],
)
def test_the_history_only_grows(database: Database, statement: str) -> None:
    write(database, [entry("¿A?")])
    with pytest.raises(psycopg.errors.RaiseException, match="only added to"):
        by_hand(database, statement)


def test_versions_follow_each_other_as_their_commits_do(database: Database) -> None:
    """A second writer, with rag or without, waits for the first to end."""
    write(database, [entry("¿A?"), entry("¿B?")])
    waiting = "SELECT FROM pg_locks WHERE relation = 'golden_history'::regclass AND NOT granted"

    def waiters() -> int:
        with database.transaction() as connection:
            return len(connection.execute(waiting).fetchall())

    with ThreadPoolExecutor(2) as threads:
        with database.transaction() as connection:
            connection.execute("UPDATE golden_dataset SET difficulty = 4 WHERE query = '¿A?'")
            hand = "UPDATE golden_dataset SET difficulty = 3 WHERE query = '¿B?'"
            others = [threads.submit(by_hand, database, hand)]
            wait_until(lambda: waiters() == 1)
            others.append(threads.submit(write, database, [entry("¿C?")], replace=False))
            wait_until(lambda: waiters() == 2)
            connection.execute("UPDATE golden_dataset SET difficulty = 5 WHERE query = '¿B?'")
        for other in others:
            other.result()
    assert [sum(counts) for _, *counts in versions(database)] == [2, 2, 1, 1]
    assert {e.query: e.difficulty for e in stored(database)} == {"¿A?": 4, "¿B?": 3, "¿C?": 1}


# Identity and property 33, over the database


ENTRIES = st.builds(
    GoldenEntry,
    query=st.sampled_from(["¿A?", "¿a?", "¿B?", "¿C?"]),
    relevant_note_ids=st.sampled_from([(uuid_number(1),), (uuid_number(1), uuid_number(2))]),
    expected_answer=st.sampled_from(["Sí.", "No."]),
    category=st.sampled_from(["factual", "causal"]),
    difficulty=st.integers(1, 2),
    tags=st.sampled_from([(), ("x", "x")]),
    golden_id=st.none() | st.integers(1, 3).map(uuid_number),
    created_at=st.none() | st.integers(1, 3).map(lambda day: datetime(2025, 1, day, tzinfo=UTC)),
    updated_at=st.none() | st.integers(1, 3).map(lambda day: datetime(2025, 1, day, tzinfo=UTC)),
)
DATASETS = st.lists(
    ENTRIES,
    max_size=3,
    unique_by=(lambda each: each.normalized_query, lambda each: each.golden_id or object()),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(DATASETS, st.booleans()), min_size=1, max_size=4))
def test_property_33_what_was_written_can_be_had_back(
    database: Database, imports: list[tuple[list[GoldenEntry], bool]]
) -> None:
    """Whatever an import rewords, exchanges or renames; a refused import changes nothing."""
    by_hand(database, "DELETE FROM golden_dataset")
    states = [stored(database)]
    for wanted, replace_all in imports:
        refused = False
        try:
            write(database, wanted, replace=replace_all)
        except InvalidGoldenDatasetError:
            refused = True
        if refused:
            assert not replace_all
            assert stored(database) == states[-1]
            continue
        states.append(stored(database))
        found = {each.normalized_query: each for each in states[-1]}
        for each in wanted:
            kept = found[each.normalized_query]
            given_ = {"golden_id", "created_at", "updated_at"}
            blanks = {n: getattr(kept, n) for n in given_ if getattr(each, n) is None}
            assert replace(each, **blanks) == kept
        if replace_all:
            assert len(found) == len(wanted)
    for state in states:
        write(database, state)
        assert stored(database) == state


# Drift


def drift_of(database: Database) -> GoldenDrift:
    with database.snapshot() as connection:
        return review_drift(connection)


def drifted(database: Database) -> tuple[list[str], list[str]]:
    """The queries whose notes are gone, and whose notes were edited."""
    drift = drift_of(database)
    return [item.entry.query for item in drift.gone], [item.entry.query for item in drift.edited]


def test_an_edited_note_is_told_until_its_question_is_looked_at(
    database: Database, notes: None
) -> None:
    """What matters is the content: neither its tags nor when it was ingested."""
    old = datetime(2020, 1, 1, tzinfo=UTC)
    tren = entry("¿Tren?", relevant_note_ids=(NOTES["tren"],))
    write(database, [entry("¿Gata?", updated_at=old), tren])
    by_hand(database, "UPDATE notes SET tags = '{viaje}', updated_at = now()")
    assert drifted(database) == ([], [])

    write_notes(database, {"gata": "La gata se llama Nube."})
    assert drifted(database) == ([], ["¿Gata?"])
    (item,) = drift_of(database).edited
    assert item.notes == ("gata",)

    golden = Golden(database, load_settings(tenant=TENANT))
    updated = golden.update(str(item.entry.golden_id), {}, origin="x")
    assert drifted(database) == ([], [])
    assert updated.updated_at
    assert updated.updated_at > old


def test_a_place_that_is_gone_from_its_note_is_told_with_its_likely_new_place(
    database: Database, notes: None
) -> None:
    """After an edit, a merge into another note, and the deletion of its note."""
    texts = {"gata": "La gata duerme en el tejado.", "tren": "El tren sale a las nueve en punto."}
    write_notes(database, texts)
    write(
        database,
        [
            entry(
                f"¿{name}?",
                relevant_note_ids=(NOTES[name],),
                places=(GoldenPlace(NOTES[name], 0, len(text), text),),
            )
            for name, text in texts.items()
        ],
    )
    assert drift_of(database).places == ()

    def told() -> dict[str, tuple[str, str] | None]:
        return {item.entry.query: item.likely for item in drift_of(database).places}

    write_notes(database, {"gata": "La gata ya no duerme en el tejado.", "tren": "Otra cosa."})
    found = told()
    assert found["¿tren?"] is None
    assert found["¿gata?"] is not None
    assert found["¿gata?"][0] == "gata"
    assert "no duerme en el tejado." in found["¿gata?"][1]
    write_notes(database, {"huerto": f"Del huerto. {texts['tren']}"})
    assert told()["¿tren?"] == ("huerto", texts["tren"])
    by_hand(database, f"DELETE FROM notes WHERE id = '{NOTES['tren']}'")
    assert told()["¿tren?"] == ("huerto", texts["tren"])
    [finding] = [
        item.finding for item in drift_of(database).places if item.likely == told()["¿tren?"]
    ]
    assert texts["tren"] in finding
    assert "huerto" in finding
