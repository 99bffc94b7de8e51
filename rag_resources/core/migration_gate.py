"""Interim quality tests of a migration: whether the next batch of a model may start.

First its vectors must be the model's own. Then quality is compared with what serves now, on the
same questions. Every batch is one more interim test (a "look") of the same hypothesis, so each may
spend only a part of the 5 % significance level. The gate of a promotion is in `core.gate`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from rag_resources.core.configuration import RetrievalConfig, Strategy
from rag_resources.core.fusion_config import DEFAULT_RETRIEVERS
from rag_resources.core.retrievers import RetrieverName
from rag_resources.core.significance import loss_p_value
from rag_resources.languages.messages import _, joined

MIN_COSINE = 0.999
"""Vectors are stored as halfvec; its rounding alone leaves a cosine above 0.9999."""

ALPHA = 0.05
"""Highest probability that a model's migration is ever stopped although quality has not changed."""

_RESERVE = 0.1
"""Share of `ALPHA` reserved for interim tests after the planned ones."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The reference of a migration: the evaluation of what serves now.

    Attributes:
        evaluation_id: The stored evaluation on which it serves; None if there is none.
        configuration: Its name.
        hits: Whether a relevant note was among the first ten, by golden id.
        left_out_windows: Whether it was asked without the windows that it has.
    """

    evaluation_id: UUID | None
    configuration: str
    hits: Mapping[UUID, bool]
    left_out_windows: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """The same questions over the same notes, asked with what serves and with the migrated model.

    Attributes:
        serving: Results of the serving configuration.
        hits: Hits with the migrated model, by golden id.
        degraded: How many times a question could not be asked in full.
    """

    serving: Baseline
    hits: Mapping[UUID, bool]
    degraded: int = 0


@dataclass(frozen=True, slots=True)
class VectorState:
    """Whether the vectors of a batch really come from the model.

    Attributes:
        sampled: Number of texts whose vectors were computed again.
        lowest_cosine: Between a stored vector and the one computed now; None without vectors.
        wrong_norms: Number of vectors of the batch whose length is not 1.
        wrong_dimension: Number of vectors of the batch with another dimension than the model's.
    """

    sampled: int
    lowest_cosine: float | None
    wrong_norms: int
    wrong_dimension: int

    def __add__(self, other: "VectorState") -> "VectorState":
        """Return the state of both batches together."""
        cosines = [
            state.lowest_cosine for state in (self, other) if state.lowest_cosine is not None
        ]
        return VectorState(
            self.sampled + other.sampled,
            min(cosines, default=None),
            self.wrong_norms + other.wrong_norms,
            self.wrong_dimension + other.wrong_dimension,
        )

    @property
    def faults(self) -> list[str]:
        """What is wrong, in Spanish; empty if nothing is."""
        found: list[str] = []
        # A cosine that is not a number is no cosine above the minimum.
        if self.lowest_cosine is not None and not self.lowest_cosine >= MIN_COSINE:
            found.append(
                _(
                    "the vectors are not the model's: of those of {texts} texts of the batch, "
                    "computed again, the one least like the stored one has cosine {cosine:.5f} "
                    "(minimum: {minimum})"
                ).format(cosine=self.lowest_cosine, minimum=MIN_COSINE, texts=self.sampled)
            )
        for count, message in (
            (self.wrong_norms, _("{count} vectors of the batch do not have length 1")),
            (
                self.wrong_dimension,
                _("{count} vectors of the batch have another dimension than the model"),
            ),
        ):
            if count:
                found.append(message.format(count=count))
        return found


@dataclass(frozen=True, slots=True)
class Drop:
    """The hits of the same questions before and now.

    Attributes:
        compared: Number of questions in common, at least one.
        before: Share of them found before.
        now: Share of them found now.
        lost: Found before and not now.
        gained: Found now and not before.
        p_value: Probability of a drop at least as large if losses and gains were equally likely.
    """

    compared: int
    before: float
    now: float
    lost: int
    gained: int
    p_value: float


@dataclass(frozen=True, slots=True)
class BatchVerdict:
    """Whether the next batch may start, the reason in Spanish, and the comparison if any."""

    is_open: bool
    reason: str
    level: float
    drop: Drop | None


def serving_with(serving: RetrievalConfig, model: str) -> RetrievalConfig:
    """Return the serving configuration with another model for the chunks.

    Windows and the similarity threshold are left out: the other model's windows may not exist yet,
    and a threshold is valid for one model only. Property 54.
    """
    changes: dict[str, object] = {"model": model, "unit": "chunks"}
    if model != serving.model:
        serving = without_windows(serving)
        changes["similarity_threshold"] = None
    measured = serving.model_copy(update=changes)
    if measured.uses_vectors:
        return measured
    by_vectors = {"strategy": Strategy.HYBRID, "retrievers": DEFAULT_RETRIEVERS}
    return measured.model_copy(update=by_vectors)


def without_windows(config: RetrievalConfig) -> RetrievalConfig:
    """Return a configuration without windows, which are made only after the chunks' vectors."""
    kept = {
        name: item for name, item in config.retrievers.items() if name is not RetrieverName.WINDOWS
    }
    return config.model_copy(update={"retrievers": kept or DEFAULT_RETRIEVERS})


def level_of_look(*, recorded: int, planned: int, spent: float) -> float:
    """Return the significance level of the next interim test.

    The level that the planned tests may have spent grows with the square of the share of batches
    done. Early on few questions have changed, so only a disaster can be detected. A tenth is
    reserved for further tests (a batch measured again, the notes of every day). The first of them
    spends half of it, the next a third of the rest, then a quarter, so there can always be another
    test. The levels of all tests sum to at most `ALPHA`. By the union bound, so does the
    probability of a false alarm, however dependent the tests are.

    Args:
        recorded: Interim tests so far.
        planned: Number of batches of the migration, at least 1; may change between tests.
        spent: Sum of the levels of the tests so far.

    Source: Lan and DeMets, Biometrika 1983, doi:10.1093/biomet/70.3.659: a spending function needs
    neither the number of looks nor their times beforehand. The square is of the power family of Kim
    and DeMets, Biometrika 1987, doi:10.1093/biomet/74.1.149.
    """
    look = recorded + 1
    if look <= planned:
        share = (1 - _RESERVE) * (look / planned) ** 2
    else:
        share = 1 - _RESERVE / (look - planned + 1)
    return max(0.0, ALPHA * share - spent)


def find_drop(before: Mapping[UUID, bool], now: Mapping[UUID, bool]) -> Drop | None:
    """Compare hits, see `loss_p_value`; None without a question in common.

    Args:
        before: Whether each question was found before, by golden id.
        now: Whether each question is found now, by golden id.
    """
    common = before.keys() & now.keys()
    if not common:
        return None
    lost = sum(before[key] and not now[key] for key in common)
    gained = sum(now[key] and not before[key] for key in common)
    return Drop(
        compared=len(common),
        before=sum(before[key] for key in common) / len(common),
        now=sum(now[key] for key in common) / len(common),
        lost=lost,
        gained=gained,
        p_value=loss_p_value(lost, gained),
    )


def judge_batch(
    hits: Mapping[UUID, bool],
    baseline: Baseline | None,
    *,
    floor: float,
    level: float,
    compared: Mapping[UUID, bool] | None = None,
) -> BatchVerdict:
    """Judge the quality after a batch.

    Args:
        hits: Whether each golden question was found, by golden id; at least one.
        baseline: The hits of what serves; if None, only the floor decides.
        floor: Lowest Hit_Rate@10 that the engineer allows, over all of `hits`.
        level: Significance level of this test.
        compared: The hits that are compared with the baseline; None: all.
    """
    found = sum(hits.values())
    # Counts are compared, not rates: 17/20 >= 0.85 must not depend on the rounding of 0.85.
    is_under = found < math.ceil(floor * len(hits) - 1e-9)
    drop = find_drop(baseline.hits, hits if compared is None else compared) if baseline else None
    is_worse = drop is not None and drop.p_value <= level
    reasons = [
        _("Hit_Rate@10 = {hit_rate:.3f} (questions: {queries})").format(
            hit_rate=found / len(hits), queries=len(hits)
        )
    ]
    if is_under:
        reasons.append(
            _("under the floor that was set, MIGRATION_FLOOR = {floor:.3f}").format(floor=floor)
        )
    if baseline and drop:
        reasons.append(
            _(
                "{fall} against “{configuration}”: from {before:.3f} to {now:.3f} on the "
                "{compared} questions in common (lost: {lost}; gained: {gained}; p = "
                "{p_value:.2g}; limit of this look: {level:.2g})"
            ).format(
                fall=_("significant fall") if is_worse else _("no significant fall"),
                configuration=baseline.configuration,
                compared=drop.compared,
                before=drop.before,
                now=drop.now,
                lost=drop.lost,
                gained=drop.gained,
                p_value=drop.p_value,
                level=level,
            )
        )
        if baseline.left_out_windows:
            reasons.append(
                _(
                    "both without windows, which are made later, so these are not the figures of "
                    "an evaluation"
                )
            )
    else:
        reasons.append(_("without an evaluation of what serves to compare the same questions with"))
    return BatchVerdict(not is_under and not is_worse, joined("; ", reasons), level, drop)


def refuse_batch(vectors: VectorState | None, degraded: int = 0) -> BatchVerdict | None:
    """Refuse a batch before any statistics; None if it may pass.

    Such a refusal is no interim test, and spends nothing of the significance level.

    Args:
        vectors: Whether its vectors come from the model; None if that was not checked.
        degraded: Questions that could not be asked in full; then its quality is unknown.
    """
    faults: list[str] = vectors.faults if vectors else []
    if degraded and not faults:
        faults = [
            _(
                "disturbed measurement: questions that went without some stage, also when "
                "repeated: {count}; it says nothing of quality, repeat the check"
            ).format(count=degraded)
        ]
    return BatchVerdict(False, joined("; ", faults), 0.0, None) if faults else None
