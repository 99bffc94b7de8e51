"""For any counts, shares are in [0, 1], parts add up to the whole, and times make sense."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.migration_status import (
    LONGEST_MINUTES,
    EmbeddingWork,
    ModelProgress,
    MonthProgress,
    minutes_left,
    total_progress,
    vectors_per_minute,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
moments = st.floats(0, 1e7).map(lambda seconds: START + timedelta(seconds=seconds))


@st.composite
def months(draw: st.DrawFn) -> MonthProgress:
    notes = draw(st.integers(0, 10**6))
    chunked = draw(st.integers(0, notes))
    migrated = draw(st.integers(0, chunked))
    pending = {"a": draw(st.integers(0, chunked))}
    return MonthProgress("2026-01", notes, chunked, migrated, pending=pending)


@st.composite
def models(draw: st.DrawFn) -> ModelProgress:
    chunks = draw(st.integers(0, 10**6))
    pending = draw(st.integers(0, chunks))
    state = draw(st.sampled_from([None, "building", "serving"]))
    return ModelProgress("a", chunks, state, False, pending, pending)


@st.composite
def work(draw: st.DrawFn) -> EmbeddingWork:
    start, end = sorted((draw(moments), draw(moments)))
    return EmbeddingWork(draw(st.sampled_from("ab")), draw(st.integers(0, 1000)), start, end)


@given(st.lists(months(), max_size=30))
def test_the_parts_make_the_whole(found: list[MonthProgress]) -> None:
    total = total_progress(found, "total")
    assert total.migrated + total.remaining == total.notes
    for month in (*found, total):
        assert 0 <= month.percent_migrated <= 100
        assert (month.percent_migrated == 100) == (month.remaining == 0)


@given(st.lists(work(), max_size=30), months(), models())
def test_a_time_left_is_of_work_left(
    done: list[EmbeddingWork], total: MonthProgress, model: ModelProgress
) -> None:
    pace = vectors_per_minute(done)
    assert all(rate > 0 for rate in pace.values())
    left = minutes_left(total, [model], pace)
    assert left is None or 0 < left <= LONGEST_MINUTES
    if not total.remaining and not model.pending_chunks and model.state:
        assert left is None
