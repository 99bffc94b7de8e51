"""How far a migration is: values computed by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from rag_resources.core.migration_status import (
    EmbeddingWork,
    ModelProgress,
    MonthProgress,
    minutes_left,
    percent,
    vectors_per_minute,
)

START = datetime(2026, 5, 1, 12, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def work(model: str, vectors: int, start: float, end: float) -> EmbeddingWork:
    return EmbeddingWork(model, vectors, after(start), after(end))


def month(name: str = "2026-05", **counts: int) -> MonthProgress:
    return MonthProgress(name, **{"notes": 0, "chunked": 0, "migrated": 0} | counts)


# --- Shares -------------------------------------------------------------------------------------


def test_only_all_of_it_is_100_percent() -> None:
    assert percent(1, 3) == 33.33
    assert percent(99_999, 100_000) == 99.99
    assert percent(7, 7) == 100
    assert percent(0, 7) == 0
    assert percent(0, 0) == 100


def test_chunks_of_queued_notes_have_no_current_vectors() -> None:
    model = ModelProgress("a", 200, "building", pending_notes=10, pending_chunks=50)
    assert (model.current_chunks, model.percent) == (150, 75)
    unknown = ModelProgress("b", 200)
    assert (unknown.current_chunks, unknown.percent) == (0, 0)


# --- Pace ---------------------------------------------------------------------------------------


def test_vectors_are_counted_by_the_time_of_work_alone() -> None:
    """300 vectors in 10 + 20 s, an hour apart; of two runs at once the time counts once."""
    apart = [work("a", 100, 0, 10), work("a", 200, 3600, 3620)]
    assert vectors_per_minute(apart) == {"a": pytest.approx(600)}
    at_once = [work("b", 100, 0, 10), work("b", 100, 2, 8), work("b", 100, 5, 15)]
    assert vectors_per_minute(at_once) == {"b": pytest.approx(1200)}
    assert vectors_per_minute([*at_once, *apart]) == {
        "a": pytest.approx(600),
        "b": pytest.approx(1200),
    }


def test_no_vectors_or_no_time_is_no_pace() -> None:
    assert vectors_per_minute([]) == {}
    assert vectors_per_minute([work("a", 0, 0, 5), work("b", 5, 3, 3)]) == {}


# --- Time left ----------------------------------------------------------------------------------


def test_the_rest_takes_its_vectors() -> None:
    """100 notes to chunk, 2 chunks a note: 2 × (30 + 200) vectors at 230 a minute."""
    total = month(notes=300, chunked=200, migrated=200)
    model = ModelProgress("a", 400, "building", False, 20, 30)
    assert minutes_left(total, [model], {"a": 230.0}) == pytest.approx(2)
    other = ModelProgress("b", 400)
    both = {"a": 230.0, "b": 1200.0}
    assert minutes_left(total, [model, other], both) == pytest.approx(2 + 1)
    assert minutes_left(total, [model, other], {"a": 230.0}) is None


# --- In words -----------------------------------------------------------------------------------
