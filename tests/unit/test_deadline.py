"""The arithmetic of deadlines, with a clock of the test's."""

import pytest

from rag_resources.core.deadline import Deadline


class Clock:
    """Seconds since whenever; a test moves it."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_a_deadline_is_milliseconds_from_now() -> None:
    clock = Clock(100.0)
    deadline = Deadline.after(2_500, clock)
    assert deadline == Deadline(102.5, clock)
    clock.now = 102.0
    assert (deadline.remaining_ms, deadline.remaining_s, deadline.expired) == (500.0, 0.5, False)


@pytest.mark.parametrize("late", [0.0, 5.0])
def test_nothing_is_left_once_it_has_passed(late: float) -> None:
    clock = Clock(100.0)
    deadline = Deadline.after(1_000, clock)
    clock.now = 101.0 + late
    assert (deadline.remaining_ms, deadline.remaining_s, deadline.expired) == (0.0, 0.0, True)


def test_within_shortens_a_deadline_and_never_prolongs_it() -> None:
    clock = Clock(100.0)
    deadline = Deadline.after(2_000, clock)
    assert deadline.within(500) == Deadline(100.5, clock)
    assert deadline.within(60_000) == deadline
    clock.now = 101.9
    assert deadline.within(500) == deadline
