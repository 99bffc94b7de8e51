"""The figures of the log of answers."""

import pytest

from rag_resources.core.answer_log import LoggedOutcome, Outcome, figures_of


def test_misses_are_told_beside_the_false_answers_that_were_measured() -> None:
    asked = [
        LoggedOutcome(outcome=Outcome.ANSWERED, false_answers=0.2, latency_ms=10, is_up=True),
        LoggedOutcome(outcome=Outcome.ANSWERED, false_answers=0.4, latency_ms=30, citations_down=1),
        LoggedOutcome(outcome=Outcome.MISSED, latency_ms=20),
        LoggedOutcome(outcome=Outcome.WITHHELD, latency_ms=20),
        LoggedOutcome(outcome=Outcome.FAILED, latency_ms=2_000),
    ]
    figures = figures_of(asked)
    assert figures.questions == 5
    assert figures.miss_rate == 0.5
    assert figures.miss_interval
    assert figures.miss_interval.low < 0.5 < figures.miss_interval.high
    assert figures.false_answers == pytest.approx(0.3)
    assert (figures.calibrated, figures.up, figures.down) == (2, 1, 1)
    assert (figures.p50_ms, figures.p95_ms) == (20, 2_000)


@pytest.mark.parametrize("asked", [[], [LoggedOutcome(outcome=Outcome.FAILED)]])
def test_without_searched_questions_there_is_no_rate(asked: list[LoggedOutcome]) -> None:
    figures = figures_of(asked)
    assert (figures.miss_rate, figures.miss_interval, figures.false_answers) == (None, None, None)
