"""Whatever is said of a gate says the same: every combination of verdicts, and of what blocks."""

import re
from itertools import product
from typing import Any
from uuid import UUID

import dagster as dg
import pytest

from rag_assets.gates import gates_of
from rag_resources.core.attribution import EvaluatedQuestion
from rag_resources.core.comparison import HITS, Inferiority
from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import Evidence, EvidenceState
from rag_resources.core.gate import GateConfig, GateState
from rag_resources.core.metrics import SERVED
from rag_resources.evaluation.comparison import EvaluationComparison
from rag_resources.evaluation.gates import Against, AmongFew, Gates
from rag_resources.evaluation.summary import GATE_WORDS, comparison_table
from rag_resources.languages.messages import _
from tests.stored_evaluations import stored

HIT_RATES = {0.5: GateState.FAIL, 0.86: GateState.INCONCLUSIVE, 1.0: GateState.PASS}
LOST = {0: Inferiority.NON_INFERIOR, 3: Inferiority.UNDECIDED, 60: Inferiority.INFERIOR}
CURRENT = Evidence(EvidenceState.CURRENT)
NAMED = NamedConfiguration(name="una", description="Una.", retrieval=RetrievalConfig())
QUERIES = 200


def checks(gates: Gates) -> dict[str, dg.AssetCheckEvaluation]:
    """What each check says, by its name."""
    return {gate.name: gate.judge(NAMED, gates) for gate in gates_of(NAMED)}


def losing(
    lost: int, served: int, *, before: StoredEvaluation, after: StoredEvaluation
) -> EvaluationComparison:
    """Of 200 questions that the first found, the second lost some, and some at what is served."""

    def asked(missed: int, unserved: int) -> dict[UUID, EvaluatedQuestion]:
        found = {}
        for number in range(QUERIES):
            metrics = {HITS: float(number >= missed)}
            if unserved is not None:
                metrics[SERVED] = float(number >= unserved)
            key = UUID(int=number)
            found[key] = EvaluatedQuestion(key, "¿?", "factual", (), (), None, metrics)
        return found

    first, second = asked(0, None if served is None else 0), asked(lost, served)
    return EvaluationComparison(before, after, first, second, 0, (), {})


def against(lost: int, served: int, **changes: Any) -> Against:
    """A comparison with another configuration, which serves."""
    other = stored(configuration="otra", config_hash="otra")
    found = losing(
        lost, served, before=changes.pop("before", other), after=stored(hit_rate_at_10=1.0)
    )
    return Against(found, 0.02, **changes)


def test_checks_tables_and_refusals_agree() -> None:
    """54 combinations of what was measured."""
    config = GateConfig()
    compared = {key: against(*key) for key in product(LOST, LOST)}
    for rate, p95_ms, lost, served in product(HIT_RATES, (100, 2_000), LOST, LOST):
        evaluation = stored(hit_rate_at_10=rate, latency_p95_ms=p95_ms, total_queries=200)
        gates = Gates(evaluation, config, compared[lost, served], CURRENT)

        assert gates.hit_rate.state is HIT_RATES[rate]
        told = checks(gates)
        assert told["hit_rate_gate"].passed is (rate > 0.5)
        words = GATE_WORDS[gates.hit_rate.state]
        assert str(told["hit_rate_gate"].description).startswith(words)
        table = comparison_table([evaluation], config, {evaluation.evaluation_id: CURRENT})
        assert table.rows[0][-1] == words

        assert told["latency_gate"].passed is (p95_ms < 2_000)
        assert (gates.shortfall is None) is not (rate == 0.5 or p95_ms == 2_000)

        worse = 60 in (lost, served)
        assert told["no_regression"].passed is not worse
        assert (gates.loss is None) is not worse
        said = str(told["no_regression"].description)
        assert (re.search(r"(?<!no )(?<!quizá )es peor \(", said) is not None) is worse
        if gates.loss:
            assert ("Hit_Rate@final" in gates.loss) is (served == 60)


@pytest.mark.parametrize("rate", HIT_RATES)
def test_a_disturbed_evaluation_passes_no_gate_and_says_why(rate: float) -> None:
    """Whatever it measured, and even if it is better than what serves."""
    evaluation = stored(hit_rate_at_10=rate, total_queries=200, degraded_queries=2, gate="pass")
    gates = Gates(evaluation, GateConfig(), against(0, 0), CURRENT)
    told = checks(gates)
    informs = {name for name, check in told.items() if check.passed}
    assert informs == {"citation_gate", "silence_gate"}, "no setting lets them block"
    assert str(told["hit_rate_gate"].description).startswith(_("disturbed"))
    assert comparison_table([evaluation], GateConfig(), {evaluation.evaluation_id: CURRENT}).rows[
        0
    ][-1] == _("disturbed")
    for name in ("latency_gate", "no_regression"):
        assert told[name].description == gates.disturbance
    assert not gates.hit_rate.allows_promotion
    assert (gates.shortfall, gates.loss) == (None, None)
    assert gates.disturbance


def test_stale_figures_of_what_serves_decide_nothing() -> None:
    """Neither that it is worse, nor that it is not; the check says the word."""
    evaluation, outdated = stored(hit_rate_at_10=1.0), "está obsoleta"
    for lost in LOST:
        compared = against(lost, 0, outdated=outdated)
        gates = Gates(evaluation, GateConfig(), compared, CURRENT)
        assert (gates.loss, gates.incomparable) == (None, outdated)
        assert outdated in str(checks(gates)["no_regression"].description)


def test_with_nothing_to_compare_with_nothing_is_worse() -> None:
    gates = Gates(stored(hit_rate_at_10=1.0), GateConfig(), None, CURRENT)
    assert (gates.loss, gates.shortfall, gates.regression) == (None, None, GateState.PASS)
    assert checks(gates)["no_regression"].description == _(
        "There is no other evaluation to compare with."
    )


def test_with_few_notes_the_verdict_tells_the_hit_rate_among_a_twentieth_of_them() -> None:
    few = AmongFew(notes=58, cutoff=3, hits=30, queries=40)
    gates = Gates(stored(hit_rate_at_10=1.0), GateConfig(), None, CURRENT, few=few)
    assert "Hit_Rate@3 = 0.750" in str(checks(gates)["hit_rate_gate"].description)
