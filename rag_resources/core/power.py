"""The power of the paired tests of `core.significance` for a number of questions.

Loading the evaluations whose discordance is observed belongs in `evaluation.power`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import stdev

import numpy as np

from rag_resources.core.comparison import ALPHA, HITS, QueryMetrics
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message
from rag_resources.core.significance import PERMUTATIONS, mcnemar_p_value

POWER = 0.8
"""Wanted probability that a two-sided test at `ALPHA` detects a difference that exists."""

_MOST_QUERIES = 1_000_000
_TAIL = 1e-12
_STEPS = 40


@dataclass(frozen=True, slots=True)
class Discordance:
    """How two evaluations of the same questions differ.

    Attributes:
        share: Share of the questions that only one of the two found, in [0, 1].
        spread: Standard deviation of the differences of the reciprocal ranks, >= 0.
        queries: Number of the questions it was observed on; 0 if it is an assumption.
    """

    share: float
    spread: float
    queries: int = 0


ASSUMED = Discordance(share=0.10, spread=0.25)
"""Used if there are no evaluations: about that of two hybrid configurations on the sample."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The differences between two configurations that a number of questions can detect.

    Attributes:
        queries: Number of the questions.
        discordance: How the two differ.
        hit_rate: Smallest difference of Hit_Rate@10 that is shown with the power `POWER`; None if
            not even the largest is.
        mrr: The same of MRR@10.
    """

    queries: int
    discordance: Discordance
    hit_rate: float | None
    mrr: float | None


@dataclass(frozen=True, slots=True)
class Requirement:
    """How many questions it takes in all to show a difference with the power `POWER`.

    None stands for more than a million.
    """

    hit_rate: int | None
    mrr: int | None


@dataclass(frozen=True, slots=True)
class PairPower:
    """The power of the golden dataset for one configuration and the reference.

    Attributes:
        configuration: Its name; None if the discordance is assumed.
        resolution: The smallest differences that can be shown now.
        requirement: The questions needed for the wanted difference.
    """

    configuration: str | None
    resolution: Resolution
    requirement: Requirement


@dataclass(frozen=True, slots=True)
class GoldenPower:
    """The power of the golden dataset.

    Attributes:
        queries: Number of golden questions.
        reference: The configuration that the others are compared with; None if the discordance is
            assumed.
        difference: The wanted difference, in (0, 1].
        pairs: At least one.
        same: The configurations that do not differ from the reference on their common questions,
            or have fewer than two.
    """

    queries: int
    reference: str | None
    difference: float
    pairs: tuple[PairPower, ...]
    same: tuple[str, ...] = ()


def golden_power(
    queries: int,
    reference: str | None,
    discordances: Mapping[str, Discordance],
    *,
    difference: float,
) -> GoldenPower:
    """Return the power of a number of golden questions.

    Args:
        queries: >= 1.
        reference: The configuration that the others were compared with.
        discordances: Of the others from it, by name; if there are none, `ASSUMED` is used.
        difference: The difference that the dataset should be able to detect, in (0, 1].

    Raises:
        InvalidParameterError: There is no question, or the difference is out of range.
    """
    pairs: list[tuple[str | None, Discordance]] = [(None, ASSUMED)]
    if discordances:
        pairs = [*discordances.items()]
    return GoldenPower(
        queries,
        reference if discordances else None,
        difference,
        tuple(
            PairPower(
                name,
                resolution(queries, discordance),
                requirement(difference, discordance),
            )
            for name, discordance in pairs
        ),
    )


def observed(before: QueryMetrics, after: QueryMetrics) -> Discordance | None:
    """Measure how two evaluations differ on their common questions.

    Returns:
        None if they have fewer than two, or do not differ on them.
    """
    keys = sorted(before.keys() & after.keys())
    if len(keys) < 2:
        return None
    hits, ranks = (
        [after[key][metric] - before[key][metric] for key in keys] for metric in (HITS, "mrr")
    )
    spread = stdev(ranks)
    share = sum(value != 0 for value in hits) / len(keys)
    return Discordance(share, spread, len(keys)) if spread > 0 else None


def resolution(queries: int, discordance: Discordance) -> Resolution:
    """Return the smallest differences that can be shown.

    If a difference is larger than the observed discordance, the discordance is assumed to be just
    as large: every question on which the two differ then favours the same one.

    Args:
        queries: >= 1.
        discordance: How the two configurations differ.

    Raises:
        InvalidParameterError: There is no question.
    """
    if queries < 1:
        raise InvalidParameterError(Message.COMPARISON_WITHOUT_QUERIES)
    share, spread = discordance.share, discordance.spread
    return Resolution(
        queries,
        discordance,
        hit_rate=_smallest(lambda difference: mcnemar_power(queries, difference, share)),
        mrr=_smallest(lambda difference: mean_power(queries, difference, spread)),
    )


def requirement(difference: float, discordance: Discordance) -> Requirement:
    """Return how many questions show a difference.

    Args:
        difference: In (0, 1].
        discordance: As for `resolution`.

    Raises:
        InvalidParameterError: The difference is out of range.
    """
    if not 0 < difference <= 1:
        raise InvalidParameterError(Message.POWER_DIFFERENCE.format(value=difference))
    share, spread = discordance.share, discordance.spread
    return Requirement(
        hit_rate=_fewest(lambda queries: mcnemar_power(queries, difference, share)),
        mrr=_fewest(lambda queries: mean_power(queries, difference, spread)),
    )


def mcnemar_power(queries: int, difference: float, discordance: float) -> float:
    """Return the probability that the exact McNemar test shows which of two hit rates is higher.

    The number of discordant questions is binomial, and so is the number of gains among them.

    Args:
        queries: >= 1.
        difference: True difference, in [0, 1].
        discordance: Share of discordant questions; raised to the difference if it is smaller.

    Source: Connett, Smith and McHugh, Statistics in Medicine 1987, 6:53-59.
    """
    share = max(difference, discordance)
    if share <= 0:
        return 0.0
    from scipy.stats import binom

    low, high = (int(binom.ppf(tail, queries, share)) for tail in (_TAIL, 1 - _TAIL))
    discordant = np.arange(low, high + 1)
    # Most losses, or gains, with which the test is still significant; -1: none.
    most = binom.ppf(ALPHA / 2, discordant, 0.5).astype(int)
    most -= 2 * binom.cdf(most, discordant, 0.5) > ALPHA
    gain = min(1.0, (1 + difference / share) / 2)
    shown = binom.cdf(most, discordant, 1 - gain)
    return float(binom.pmf(discordant, queries, share) @ shown)


def mean_power(queries: int, difference: float, spread: float) -> float:
    """Return the probability that a paired t-test shows which of two means is higher.

    The product tests MRR by paired randomization, whose power is close to that of this test.

    Args:
        queries: >= 1.
        difference: True difference, in [0, 1].
        spread: Standard deviation of the differences, >= 0.

    Source: Hoeffding, Annals of Mathematical Statistics 1952, doi:10.1214/aoms/1177729436.
    """
    if queries < 2:
        return 0.0
    if spread <= 0:
        return float(difference > 0)
    from scipy.stats import nct
    from scipy.stats import t as student

    critical = float(student.ppf(1 - ALPHA / 2, queries - 1))
    shift = difference * math.sqrt(queries) / spread
    return float(nct.sf(critical, queries - 1, shift))


def smallest_p_values(queries: int) -> tuple[float, float]:
    """Return the smallest p-values that any outcome gives: by McNemar, and by randomization.

    All questions then differ in the same direction.
    """
    signs = 2.0 ** (1 - queries)
    return mcnemar_p_value(0, queries), max(signs, 1 / (PERMUTATIONS + 1))


def fewest_discordant() -> int:
    """Return the fewest discordant questions with which the McNemar test can be significant."""
    return next(count for count in range(1, 100) if mcnemar_p_value(0, count) <= ALPHA)


def _smallest(power: Callable[[float], float]) -> float | None:
    """Return the smallest difference with enough power, which grows with the difference."""
    if power(1.0) < POWER:
        return None
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high


def _fewest(power: Callable[[int], float]) -> int | None:
    """Return the smallest number of questions with enough power.

    The power grows with the number, except by less than the step of a discrete test where nearly
    all questions are discordant.
    """
    high = 1
    while power(high) < POWER:
        high *= 2
        if high > _MOST_QUERIES:
            return None
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high
