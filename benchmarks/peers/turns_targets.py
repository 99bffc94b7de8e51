"""The targets of speed with real questions: ours against the best careful peer of the same run.

What is measured is `turns`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from benchmarks.peers.contender import ALIKE, CONTENDERS, OUR_OWN, WINDOWED
from benchmarks.tables import Table

SMALL = 10_000
"""Passages up to which the first of two limits counts."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What is compared of a contender; None if it was not measured.

    Attributes:
        p95_ms: Of one client.
        rate: Questions a second of several clients.
        ingest_s: For the whole corpus.
    """

    p95_ms: float
    rate: float
    ingest_s: float | None


@dataclass(frozen=True, slots=True)
class Target:
    """A limit for one of ours as a multiple of the best peer's figure.

    Attributes:
        small: With at most `SMALL` passages.
        large: With more.
        is_most: Whether less is better.
    """

    contender: str
    figure: str
    value: Callable[[Measured], float | None]
    small: float
    large: float
    is_most: bool = False


TARGETS = (
    Target(ALIKE, "p95", lambda own: own.p95_ms, 0.5, 0.7, is_most=True),
    Target(ALIKE, "questions/s", lambda own: own.rate, 2, 1.2),
    Target(ALIKE, "ingestion", lambda own: own.ingest_s and 1 / own.ingest_s, 1.2, 1.2),
    Target(WINDOWED, "p95", lambda own: own.p95_ms, 0.7, 1, is_most=True),
    Target(WINDOWED, "questions/s", lambda own: own.rate, 1.5, 0.9),
)


def targets_table(title: str, passages: int, measured: Mapping[str, Measured]) -> Table:
    """Say of each target by how much it is met or missed; those not measured are left out."""
    rows = []
    for target in TARGETS:
        ratio = _ratio(target, measured)
        if ratio is None:
            continue
        limit = target.small if passages <= SMALL else target.large
        met = ratio <= limit if target.is_most else ratio >= limit
        sign = "≤" if target.is_most else "≥"
        name = CONTENDERS[target.contender].title
        rows.append((f"{name}: {target.figure}", f"{sign} {limit:g}", f"{ratio:.2f}", _word(met)))
    columns = ("target", "times the best peer's", "measured", "met")
    return Table(f"Targets with {title}", columns, tuple(rows))


def _word(met: bool) -> str:
    return "yes" if met else "NO"


def _ratio(target: Target, measured: Mapping[str, Measured]) -> float | None:
    own = measured.get(target.contender)
    ours = target.value(own) if own else None
    peers = list(_of_peers(target, measured))
    if not ours or not peers:
        return None
    return ours / (min(peers) if target.is_most else max(peers))


def _of_peers(target: Target, measured: Mapping[str, Measured]) -> Iterator[float]:
    for name, one in measured.items():
        is_peer = name in CONTENDERS and name not in OUR_OWN and CONTENDERS[name].careful
        value = target.value(one) if is_peer else None
        if value:
            yield value
