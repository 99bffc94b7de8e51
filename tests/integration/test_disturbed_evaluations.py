"""Evaluations while models are slow or fail over real HTTP."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig
from rag_resources.core.errors import (
    DisturbedEvaluationError,
    GateNotPassedError,
    InvalidParameterError,
)
from rag_resources.core.experiment import parse_experiment
from rag_resources.core.gate import GateConfig, GateState
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Database
from rag_resources.evaluation.comparison import compare_by_name, compare_with_serving
from rag_resources.evaluation.experiment import run_experiment
from rag_resources.evaluation.runner import Evaluation, evaluate
from rag_resources.languages.messages import _
from rag_resources.migration.batches import measure_pair, record_batch
from rag_resources.retrieval.pipeline import DEADLINE_MS
from rag_resources.serving.promotion import judge_serving, promote_best
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.golden import write_golden
from rag_resources.store.migration import BatchRun
from rag_resources.store.notes import note_id
from rag_resources.store.promotions import evaluation_of_serving, promote
from tests.ollama_server import Fault, OllamaServer
from tests.retrieval_stand import HYBRID, MODEL, MODELS, NOTE_MODEL, Stand

EMBED = "/api/embed"
SLOW_S = 1.25 * DEADLINE_MS / 1000
QUESTIONS = {
    "¿Qué pasó con el ascensor de la escalera?": 0,
    "¿Qué dijo el pediatra de la fiebre de Vera?": 1,
    "¿Qué mermelada hizo Lola?": 3,
}
NAMED = {"una": NamedConfiguration(name="una", description="una", retrieval=HYBRID)}
LENIENT = GateConfig(hit_rate_at_10=0.01, latency_p95_ms=60_000, margin=0.99)
CHUNKED = TimeWindow(datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 8, tzinfo=UTC))
"""The days of the notes that are chunked."""


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def stand(database: Database, database_url: str) -> Iterator[Stand]:
    """Notes, a question about each of three of them, and a model server."""
    entries = [
        GoldenEntry(query, (note_id("ana", "diario", str(number)),), "sí", "factual", 1)
        for query, number in QUESTIONS.items()
    ]
    with OllamaServer(embedding_models=dict(MODELS)) as ollama:
        made = Stand(database, database_url, ollama)
        with database.transaction() as connection:
            write_golden(connection, entries, replace=True)
        yield made
        made.close()


def evaluated(
    stand: Stand,
    progress: Callable[[int], None] = lambda _: None,
    wanted: RetrievalConfig = HYBRID,
    name: str = "una",
) -> Evaluation:
    return evaluate(stand.database, stand.new_pipeline(), name, wanted, progress=progress)


def after_questions(action: Callable[[], None]) -> Callable[[int], None]:
    """Do something once every question was asked for the first time."""
    asked: list[int] = []

    def progress(_: int) -> None:
        asked.append(1)
        if len(asked) == len(QUESTIONS):
            action()

    return progress


def disturbed(stand: Stand) -> Evaluation:
    """An evaluation while the model server fails."""
    stand.ollama.inject(Fault.STATUS, path=EMBED)
    made = evaluated(stand)
    stand.ollama.heal()
    return made


def test_questions_that_lost_a_stage_are_asked_again_after_the_others(
    stand: Stand,
) -> None:
    """Every question failed, and so often that the circuit breakers opened."""
    calm = evaluated(stand)
    stand.ollama.inject(Fault.STATUS, path=EMBED)
    again = evaluated(stand, after_questions(stand.ollama.heal))
    assert again.summary.degraded_queries == 0
    assert again.summary.per_query == calm.summary.per_query
    assert again.summary.verdict.state is calm.summary.verdict.state


def test_the_latency_is_that_of_users_and_an_incomplete_answer_takes_the_deadline(
    stand: Stand,
) -> None:
    """The model is slow in the latency pass only: quality is whole, and p95 says what users get."""
    slow = evaluated(
        stand, after_questions(lambda: stand.ollama.inject(Fault.SLOW, path=EMBED, seconds=SLOW_S))
    )
    summary = slow.summary
    assert (summary.latency_queries, summary.late_queries) == (len(QUESTIONS), len(QUESTIONS))
    assert summary.latency.p50_ms >= DEADLINE_MS
    assert summary.degraded_queries == 0
    with stand.database.transaction() as connection:
        stored = latest_evaluation(connection, "una")
    assert stored
    assert (stored.latency_queries, stored.late_queries) == (3, 3)
    stand.ollama.heal()
    calm = evaluated(stand).summary
    assert calm.metrics == summary.metrics


def test_a_question_that_degrades_twice_disturbs_the_evaluation(stand: Stand) -> None:
    """Stored as such, promoted by no configuration of the gates, and compared with nothing."""
    calm = evaluated(stand)
    made = disturbed(stand)
    assert made.summary.degraded_queries == len(QUESTIONS)
    assert made.summary.verdict.state is GateState.DISTURBED
    with stand.database.snapshot() as connection:
        stored = latest_evaluation(connection, "una")
        assert stored
        assert (stored.gate, stored.degraded_queries) == ("disturbed", 3)
        assert compare_with_serving(connection, stored) is None
        for pair in ((str(calm.evaluation_id), "una"), ("una", str(calm.evaluation_id))):
            with pytest.raises(InvalidParameterError, match="fue perturbada"):
                compare_by_name(connection, *pair)
    with pytest.raises(GateNotPassedError, match="también al repetirlas: 3;"):
        promote_best(stand.database, NAMED, gate=LENIENT, name="una")
    evaluated(stand)
    assert promote_best(stand.database, NAMED, gate=LENIENT, name="una").changed


def test_what_serves_is_not_judged_by_a_disturbed_evaluation(stand: Stand) -> None:
    """The nightly verdict says that it could not measure, and the reference stays."""
    promoted = evaluated(stand)
    promote_best(stand.database, NAMED, gate=LENIENT, name="una")
    disturbed(stand)
    with stand.database.snapshot() as connection:
        assert "perturbada" in str(judge_serving(connection, LENIENT).fallen)
        reference = evaluation_of_serving(connection)
        assert reference
        assert reference.evaluation_id == promoted.evaluation_id
    evaluated(stand)
    with stand.database.snapshot() as connection:
        assert judge_serving(connection, LENIENT).fallen is None


def test_a_batch_whose_questions_degraded_does_not_start_the_next_and_spends_nothing(
    stand: Stand,
) -> None:
    """What serves has the other model, so the same questions are asked with both."""
    serving = RetrievalConfig(model=NOTE_MODEL, unit="notes")
    made = evaluated(stand, wanted=serving, name="notas")
    with stand.database.transaction() as connection:
        stored = latest_evaluation(connection, "notas")
        assert stored
        promote(connection, stored, serving, run_id=None)

    def look(run: str) -> tuple[bool, float, str]:
        pair = measure_pair(stand.database, stand.new_pipeline(), MODEL, CHUNKED)
        assert pair
        said = record_batch(
            stand.database, BatchRun(MODEL, "x", run, ()), made, planned=4, floor=0, pair=pair
        )
        return said.is_open, said.level, said.reason

    stand.ollama.inject(Fault.STATUS, path=EMBED)
    is_open, level, reason = look("r1")
    assert (is_open, level) == (False, 0)
    assert "medición perturbada" in reason
    stand.ollama.heal()
    is_open, level, reason = look("r2")
    assert is_open
    assert level > 0
    assert _("disturbed") not in reason


def test_an_experiment_chooses_nothing_by_a_disturbed_evaluation(
    stand: Stand,
) -> None:
    stand.ollama.inject(Fault.STATUS, path=EMBED)
    asked = parse_experiment(
        {
            "name": "x",
            "base": "una",
            "grid": {"contextual": [True, False]},
            "selection": {"metric": "mrr", "folds": 2},
        },
        origin="x",
    )
    with pytest.raises(DisturbedEvaluationError, match="con «una», la evaluación fue perturbada"):
        run_experiment(stand.database, stand.new_pipeline(), asked, {"una": HYBRID})
