"""The profile of many retrievals, and how Dagster shows it."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

from rag_assets.evaluation.metadata import profile_markdown
from rag_resources.database.pool import PoolStatistics
from rag_resources.retrieval.profile import WINDOW, Profile

POOL = PoolStatistics(
    size=5,
    in_use=2,
    waiting=1,
    requests=100,
    requests_queued=10,
    requests_failed=0,
    wait_ms_avg=0.25,
    connections_opened=8,
    connections_failed=0,
    connections_lost=3,
)


def test_a_profile_gives_nearest_rank_percentiles_by_stage_and_in_all() -> None:
    profile = Profile()
    for number in range(1, 101):
        profile.record(2.0 * number, {"embed": 1.0, "search": number}, degraded=(), cached=False)
    summary = profile.summary()
    assert list(summary.stages) == ["embed", "search"]
    search = summary.stages["search"]
    assert (search.count, search.average_ms) == (100, 50.5)
    assert search.percentiles.p50_ms == 50
    assert search.percentiles.p95_ms == 95
    assert search.percentiles.p99_ms == 99
    assert summary.total is not None
    assert summary.total.percentiles.p99_ms == 198


def test_answers_from_the_cache_do_not_flatter_the_others() -> None:
    profile = Profile()
    profile.record(100.0, {"search": 90.0}, degraded=(), cached=False)
    for _ in range(9):
        profile.record(0.1, {}, degraded=(), cached=True)
    summary = profile.summary()
    assert summary.total is not None
    assert summary.cached is not None
    assert (summary.total.count, summary.total.percentiles.p50_ms) == (1, 100.0)
    assert (summary.cached.count, summary.cached.percentiles.p50_ms) == (9, 0.1)


def test_degraded_stages_are_counted_the_most_frequent_first() -> None:
    profile = Profile()
    for degraded in (("rerank",), ("semantic", "rerank"), ()):
        profile.record(1.0, {}, degraded=degraded, cached=False)
    assert list(profile.summary().degraded.items()) == [("rerank", 2), ("semantic", 1)]


def test_a_profile_without_retrievals_is_empty() -> None:
    summary = Profile().summary()
    assert (summary.total, summary.cached) == (None, None)
    assert not summary.stages
    assert not summary.degraded


def test_only_recent_latencies_are_kept_and_every_one_is_counted() -> None:
    profile = Profile()
    for latency_ms in (500.0, 1.0):
        for _ in range(WINDOW):
            profile.record(latency_ms, {"search": latency_ms}, degraded=(), cached=False)
    search = profile.summary().stages["search"]
    assert (search.count, search.percentiles.p99_ms, search.average_ms) == (2 * WINDOW, 1.0, 1.0)


def test_memory_stays_flat_once_the_window_is_full() -> None:
    profile = Profile()

    def fill(start: int) -> int:
        for number in range(start, start + WINDOW):
            profile.record(number + 0.5, {"search": number + 0.25}, degraded=("a",), cached=False)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        full = fill(0)
        later = [fill(WINDOW * times) for times in (1, 2)]
    finally:
        tracemalloc.stop()
    assert max(later) < 1.05 * full


def test_threads_lose_no_retrieval() -> None:
    profile = Profile()

    def retrieve(_: int) -> None:
        profile.record(1.0, {"search": 1.0}, degraded=("rerank",), cached=False)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(retrieve, range(2000)))
    summary = profile.summary()
    assert summary.stages["search"].count == summary.degraded["rerank"] == 2000


def test_the_tables_show_stages_failures_and_pool() -> None:
    profile = Profile()
    profile.record(12.0, {"search": 10.0}, degraded=("rerank",), cached=False)
    profile.record(0.5, {}, degraded=(), cached=True)
    shown = profile_markdown(profile.summary(), pool=POOL)
    assert "| búsqueda | 1 | 10.0 | 10.0 | 10.0 | 10.0 |" in shown
    assert "| consulta completa | 1 | 12.0 |" in shown
    assert "| consulta completa, desde la caché | 1 | 0.5 |" in shown
    assert "| reordenación | 1 |" in shown
    assert "| 5 | 2 | 1 | 100 | 0.25 | 3 |" in shown


def test_every_row_of_a_table_has_the_columns_of_its_head() -> None:
    profile = Profile()
    profile.record(12.0, {"search": 10.0}, degraded=("rerank",), cached=False)
    shown = profile_markdown(profile.summary(), pool=POOL)
    for table in shown.split("\n\n"):
        assert len({row.count("|") for row in table.splitlines()}) == 1


def test_a_process_without_retrievals_shows_no_empty_tables() -> None:
    shown = profile_markdown(Profile().summary(), pool=POOL)
    assert len(shown.split("\n\n")) == 2
