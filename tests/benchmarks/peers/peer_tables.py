"""The tables of the comparison with peers, and which targets were met."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rag_resources.core.comparison import Comparison, QueryMetrics, Verdict, compare_pairs
from rag_resources.core.evaluation import percentiles
from tests.benchmarks.peers.contender import CONTENDERS, OURS
from tests.benchmarks.peers.running import KILLED_AT, Killed
from tests.benchmarks.peers.worker import CLIENTS
from tests.benchmarks.quality_study import RANKED
from tests.benchmarks.quality_tables import METRICS, Table, differences, with_interval

LEAST_INGESTION = 3.0
LEAST_AGAIN = 20.0
LEAST_THROUGHPUT = 4.0
SMALL = 10_000
"""Passages up to which the target of the latency is the first."""
MOST_P95 = (0.3, 0.5)

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Quality:
    """Every contender over notes of one length.

    Attributes:
        measured: By contender.
        failures: Questions that raised an error, by contender and name of the error.
        latencies_ms: Of one client that wants 50 passages, by contender.
    """

    title: str
    questions: int
    measured: Mapping[str, QueryMetrics]
    failures: Mapping[str, Mapping[str, int]]
    latencies_ms: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Speed:
    """Every contender over a number of passages: what `worker.measure_speed` tells."""

    passages: int
    measured: Mapping[str, Mapping[str, Any]]

    def ingestion(self, name: str) -> float:
        """Return passages per second."""
        return self.passages / float(self.measured[name]["ingest_s"])

    def p95_ms(self, name: str) -> float:
        """Return the 95th percentile of one client."""
        return percentiles(self.measured[name]["latencies_ms"]).p95_ms


@dataclass(frozen=True, slots=True)
class Results:
    """All that a run measured; `kills` by contender, over the passages of the first speed."""

    qualities: list[Quality]
    speeds: list[Speed]
    kills: dict[str, list[Killed]]


def peer_tables(facts: Mapping[str, str], results: Results) -> list[Table]:
    """Return all tables of a run."""
    qualities, speeds = results.qualities, results.speeds
    found = _compared(qualities)
    tables = [Table("What was measured", ("", ""), list(facts.items()))]
    tables += [_quality(quality) for quality in qualities]
    tables += [_contrasts(quality, found) for quality in qualities]
    tables += [_speed(speed) for speed in speeds]
    if speeds:
        tables.append(_reruns(speeds[0], results.kills))
    return [*tables, _targets(qualities, found, speeds)]


def _compared(qualities: Sequence[Quality]) -> dict[tuple[str, str], Comparison]:
    """Compare ours with each peer over each length, as one family; by length and peer."""
    pairs = {
        (quality.title, name): (measured, quality.measured[OURS])
        for quality in qualities
        for name, measured in quality.measured.items()
        if name != OURS and OURS in quality.measured
    }
    return dict(zip(pairs, compare_pairs(list(pairs.values())), strict=True)) if pairs else {}


def _quality(quality: Quality) -> Table:
    ordered = sorted(quality.measured, key=lambda name: -_mean(quality.measured[name], "mrr"))
    return Table(
        f"Quality with {quality.title}",
        ("contender", *(METRICS[metric] for metric in RANKED), "p50 ms", "p95 ms", "failed"),
        [
            (
                CONTENDERS[name].title,
                *(with_interval(quality.measured[name], metric) for metric in RANKED),
                *_latency(quality.latencies_ms[name]),
                _failures(quality.failures[name]),
            )
            for name in ordered
        ],
        f"{quality.questions:,} questions, ranks over distinct notes. Intervals of 95 %: Wilson's "
        "for hits, BCa bootstrap for means. p50 and p95 of one client that wants 50 passages.",
    )


def _contrasts(quality: Quality, found: Mapping[tuple[str, str], Comparison]) -> Table:
    return Table(
        f"{CONTENDERS[OURS].title} against each with {quality.title}",
        ("minus", *(METRICS[metric] for metric in RANKED)),
        [
            (CONTENDERS[name].title, *differences(comparison))
            for (title, name), comparison in found.items()
            if title == quality.title
        ],
        f"Paired over {quality.questions:,} questions, BCa intervals of 95 %; p by McNemar's exact "
        "test for hits and by paired randomization for means, before and after Holm's adjustment "
        "over all comparisons of this page.",
    )


def _speed(speed: Speed) -> Table:
    rows = []
    for name, own in speed.measured.items():
        again = f"{own['again_s']:.2f} ({own['again_s'] / own['ingest_s']:.1%})"
        rows.append(
            (
                CONTENDERS[name].title,
                f"{speed.ingestion(name):,.0f}",
                own["again_error"] or again,
                *_latency(own["latencies_ms"]),
                f"{own['throughput']:.0f}",
                _failures(own["failures"]),
                f"{own['peak_mb']:.0f} ({own['before_mb']:.0f})",
            )
        )
    return Table(
        f"Speed with {speed.passages:,} passages",
        (
            "contender",
            "ingested, passages/s",
            "again, s (of first)",
            "p50 ms",
            "p95 ms",
            f"{CLIENTS} clients, questions/s",
            "failed",
            "memory MB (before)",
        ),
        rows,
        "Embedding is a look-up for all. p50 and p95 of one client; memory is the most that the "
        "client's process had, and in brackets once everything was imported and read.",
    )


def _reruns(speed: Speed, kills: Mapping[str, Sequence[Killed]]) -> Table:
    """What is stored after an undisturbed second run, and after runs that were killed."""
    shares = ", ".join(f"{share:.0%}" for share in KILLED_AT)
    rows = []
    for name, own in speed.measured.items():
        after = own["after_again"]
        again = _state(own["again_error"], after["missing"], after["surplus"])
        killed = kills.get(name, ())
        left = ", ".join(f"{one.stored:,}" for one in killed)
        then = dict.fromkeys(_state(one.error, one.missing, one.surplus) for one in killed)
        rows.append((CONTENDERS[name].title, again, left or NOTHING, "; ".join(then) or NOTHING))
    return Table(
        f"Ingesting {speed.passages:,} passages twice, and after SIGKILL",
        ("contender", "after the second run", "left by a kill", "after the run that follows"),
        rows,
        f"Killed after {shares} of the time that ingestion took, each time in an empty database.",
    )


def _state(error: str, missing: int, surplus: int) -> str:
    problems = [error] if error else []
    problems += [f"{missing:,} missing"] if missing else []
    problems += [f"{surplus:,} twice"] if surplus else []
    return ", ".join(problems) or "right"


def _targets(
    qualities: Sequence[Quality],
    found: Mapping[tuple[str, str], Comparison],
    speeds: Sequence[Speed],
) -> Table:
    rows = [*_quality_targets(qualities, found), *(row for one in speeds for row in _ratios(one))]
    return Table(
        "Targets",
        ("target", "measured", "met"),
        [(target, measured, "yes" if met else "NO") for target, measured, met in rows],
        "Ratios are of the best of the careful set-ups in each figure by itself.",
    )


def _quality_targets(
    qualities: Sequence[Quality], found: Mapping[tuple[str, str], Comparison]
) -> Iterable[tuple[str, str, bool]]:
    mrr = RANKED.index("mrr")
    for quality in qualities:
        own = [(name, item) for (title, name), item in found.items() if title == quality.title]
        if not own:
            continue
        name, least = min(own, key=lambda pair: pair[1].metrics[mrr].difference)
        difference = least.metrics[mrr].difference
        measured = f"{difference:+.4f} against {CONTENDERS[name].title}"
        yield f"MRR@10 at least the best peer's, {quality.title}", measured, difference >= 0
        defaults = [item for name, item in own if not CONTENDERS[name].careful]
        better = sum(item.metrics[mrr].verdict is Verdict.BETTER for item in defaults)
        if defaults:
            target = f"MRR@10 significantly above every default, {quality.title}"
            yield target, f"{better} of {len(defaults)}", better == len(defaults)


def _ratios(speed: Speed) -> Iterable[tuple[str, str, bool]]:
    own = speed.measured
    peers = [name for name in own if name != OURS and CONTENDERS[name].careful]
    if OURS not in own or not peers:
        return
    size = f"{speed.passages:,} passages"

    def ratio(value: Callable[[str], float], *, best: Callable[[Iterable[float]], float]) -> float:
        return value(OURS) / best(value(name) for name in peers)

    ingestion = ratio(speed.ingestion, best=max)
    again = 1 / ratio(lambda name: float(own[name]["again_s"]), best=min)
    p95 = ratio(speed.p95_ms, best=min)
    throughput = ratio(lambda name: float(own[name]["throughput"]), best=max)
    most = MOST_P95[speed.passages > SMALL]
    for title, value, limit, met in (
        ("ingestion, times", ingestion, f">= {LEAST_INGESTION:g}", ingestion >= LEAST_INGESTION),
        ("unchanged re-ingestion, times", again, f">= {LEAST_AGAIN:g}", again >= LEAST_AGAIN),
        ("p95, times", p95, f"<= {most:g}", p95 <= most),
        (
            f"{CLIENTS} clients, times",
            throughput,
            f">= {LEAST_THROUGHPUT:g}",
            throughput >= LEAST_THROUGHPUT,
        ),
    ):
        yield f"{title} {limit}, {size}", f"{value:.2f}", met


def _mean(values: QueryMetrics, metric: str) -> float:
    return fmean(question[metric] for question in values.values())


def _latency(latencies_ms: Sequence[float]) -> tuple[str, str]:
    found = percentiles(latencies_ms)
    return f"{found.p50_ms:.1f}", f"{found.p95_ms:.1f}"


def _failures(failures: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in failures.items()) or "0"
