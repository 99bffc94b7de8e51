"""The figures of the log of answers, the drift of questions, and the questions worth keeping."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from rag_resources.core.answer_log import AskedQuestion, Outcome, figures_of
from rag_resources.core.golden_asked import DoubtfulAnswer, asked_candidates
from rag_resources.core.question_drift import question_drift

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOTES = [uuid4() for _ in range(5)]


def test_misses_are_told_beside_the_false_answers_that_were_measured() -> None:
    asked = [
        AskedQuestion(Outcome.ANSWERED, false_answers=0.2, latency_ms=10, is_up=True),
        AskedQuestion(Outcome.ANSWERED, false_answers=0.4, latency_ms=30, citations_down=1),
        AskedQuestion(Outcome.MISSED, latency_ms=20),
        AskedQuestion(Outcome.WITHHELD, latency_ms=20),
        AskedQuestion(Outcome.FAILED, latency_ms=2_000),
    ]
    figures = figures_of(asked)
    assert figures.questions == 5
    assert figures.miss_rate == 0.5
    assert figures.miss_interval
    assert figures.miss_interval.low < 0.5 < figures.miss_interval.high
    assert figures.false_answers == pytest.approx(0.3)
    assert (figures.calibrated, figures.up, figures.down) == (2, 1, 1)
    assert (figures.p50_ms, figures.p95_ms) == (20, 2_000)


@pytest.mark.parametrize("asked", [[], [AskedQuestion(Outcome.FAILED)]])
def test_without_searched_questions_there_is_no_rate(asked: list[AskedQuestion]) -> None:
    figures = figures_of(asked)
    assert (figures.miss_rate, figures.miss_interval, figures.false_answers) == (None, None, None)


def question(text: str, intent: str = "factual") -> AskedQuestion:
    words = frozenset(text.strip("¿?").split())
    return AskedQuestion(Outcome.ANSWERED, text, words, intent=intent)


def test_a_question_is_far_if_no_golden_one_has_half_of_its_stems() -> None:
    golden = [{"gata", "duerme", "cocina"}, {"coche", "taller"}]
    asked = [question("¿gata cocina?"), question("¿GATA cocina?"), question("¿luna gata sol?")]
    drift = question_drift(asked, golden_lexemes=golden, golden_intents={"factual": 2})
    assert drift.questions == 2  # The same question in other letters is one.
    assert drift.far == ("¿luna gata sol?",)
    assert drift.far_share == 0.5
    assert drift.intents
    assert drift.intents.distance == 0


def test_the_mix_of_intents_is_compared_and_nothing_is_without_texts() -> None:
    asked = [AskedQuestion(Outcome.ANSWERED, intent="causal")]
    drift = question_drift(asked, golden_lexemes=[{"gata"}], golden_intents={"factual": 3})
    assert (drift.questions, drift.far_share, drift.nearness) == (0, None, None)
    assert drift.intents
    assert drift.intents.distance == 1


def doubtful(
    text: str,
    *,
    days: int = 0,
    is_down: bool = False,
    dismissed: bool = False,
    notes: str = "001234",
) -> DoubtfulAnswer:
    found = tuple(NOTES[int(digit)] for digit in notes)
    at = NOW - timedelta(days=days)
    return DoubtfulAnswer(uuid4(), at, text, "causal", found, is_down, dismissed)


def test_what_readers_asked_becomes_candidates_once_each() -> None:
    answers = [
        doubtful("¿Rara?"),
        doubtful("¿Por qué?", days=1),
        doubtful("¿POR  QUÉ?", days=2),
        doubtful("¿Mal?", days=3, is_down=True),
        doubtful("¿Ya está?"),
        doubtful("¿No es de aquí?"),
        doubtful("¿no es de aquí?", days=4, dismissed=True),
    ]
    found = asked_candidates(answers, known={"¿ya está?"}, existing={*NOTES[1:]})
    assert [(own.latest.question, own.times) for own in found] == [
        ("¿Mal?", 1),
        ("¿Por qué?", 2),
        ("¿Rara?", 1),
    ]
    assert found[0].note_ids == (NOTES[1], NOTES[2], NOTES[3])  # None twice, and none that is gone.


def test_a_candidate_is_left_to_a_person_to_complete() -> None:
    (found,) = asked_candidates([doubtful("¿Mal?", notes="")], known=(), existing=())
    row = found.to_json({}, {})
    assert (row["expectedAnswer"], row["difficulty"], row["category"]) == ("", None, "causal")
    assert row["tags"] == ["candidata"]
    assert UUID(row["asked"]["answerId"]) == found.latest.answer_id
