"""When an answer is withheld, counted by hand."""

import pytest

from rag_resources.core.silence import (
    SilenceCase,
    silence_curve,
)

ASKED = [0.9, 0.8, 0.8, 0.7, 0.6, 0.6, 0.5, 0.4, 0.3, 0.2]
HIDDEN = [0.75, 0.55, 0.35, 0.1]


def cases(part: int = 0) -> list[SilenceCase]:
    """Ten questions with their notes and four without, all of one part."""
    return [
        *(SilenceCase(part, each, is_hidden=False) for each in ASKED),
        *(SilenceCase(part, each, is_hidden=True) for each in HIDDEN),
    ]


@pytest.mark.parametrize(
    ("allowed", "threshold", "missed", "false_answers"),
    [(0.0, 0.2, 0, 3), (0.1, 0.3, 1, 3), (0.2, 0.4, 2, 2), (0.49, 0.6, 4, 1), (0.5, 0.6, 4, 1)],
)
def test_a_threshold_misses_at_most_what_is_allowed(
    allowed: float, threshold: float, missed: int, false_answers: int
) -> None:
    """At half, the two equal probabilities of .6 stay together, so one miss fewer is made."""
    curve = silence_curve(cases())
    assert curve is not None
    point = curve.at(allowed)
    assert (point.threshold, point.missed, point.false_answers) == (
        threshold,
        missed,
        false_answers,
    )
    assert (curve.misses(point), curve.false_answers(point)) == (missed / 10, false_answers / 4)


def test_what_a_part_is_counted_with_comes_from_the_others() -> None:
    """The low probabilities of the second part are all below what the first part allows."""
    low = [SilenceCase(1, 0.05, is_hidden=hidden) for hidden in (False, False, True)]
    curve = silence_curve([*cases(0), *low])
    assert curve is not None
    point = curve.at(0.1)
    # For the first part the second one allows .05, for the second the first allows .3.
    assert (point.missed, point.false_answers) == (2, 4)
    # Of all twelve one may be missed.
    assert point.threshold == 0.05


def test_a_question_without_anything_to_say_is_silent_at_any_threshold() -> None:
    nothing = [SilenceCase(0, None, is_hidden=hidden) for hidden in (False, True)]
    curve = silence_curve([*cases(), *nothing])
    assert curve is not None
    point = curve.at(0.0)
    assert (point.threshold, point.missed, point.false_answers) == (0.0, 1, 4)


def test_what_is_told_has_the_intervals() -> None:
    curve = silence_curve(cases())
    assert curve is not None
    told = curve.to_json(curve.at(0.1))
    assert (told["allowedMisses"], told["misses"], told["falseAnswers"]) == (0.1, 0.1, 0.75)
    low, high = told["falseAnswersInterval"]
    # Wilson's interval of three of four.
    assert (round(low, 3), round(high, 3)) == (0.301, 0.954)
