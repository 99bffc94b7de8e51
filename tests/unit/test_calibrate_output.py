"""What is said where there are too few questions to measure confidence."""

import pytest

from rag_resources.cli.calibrate import CLAIM_WORDS, show_calibrated
from rag_resources.core.calibration import FEWEST, Calibrated, Measured
from rag_resources.core.confidence import Calibration, Claim
from rag_resources.languages.messages import _, ngettext


def test_the_hint_says_how_many_questions_are_needed() -> None:
    assert str(FEWEST) in _(
        "“rag calibrate” is missing, which takes 20 questions that succeed and 20 that fail"
    )


def test_if_nothing_could_be_measured_only_that_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With how many questions there are; that the signals tell nothing would be a measurement."""
    made = Calibration(claims={}, questions=8, unanswerable=0)
    show_calibrated("hybrid", Calibrated(made, {}, None))
    told = ngettext(
        "Nothing was measured: there is {questions} question, and at least {fewest} that are "
        "right and {fewest} that are wrong are needed. No calibration is stored.",
        "Nothing was measured: there are {questions} questions, and at least {fewest} that are "
        "right and {fewest} that are wrong are needed. No calibration is stored.",
        8,
    ).format(questions=8, fewest=FEWEST)
    assert capsys.readouterr().out == f"{told}\n"


def test_a_claim_that_could_not_be_measured_is_named_beside_those_that_could(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = Calibration(claims={}, questions=40, unanswerable=0)
    found = Measured(
        auc=0.5,
        auc_low=0.4,
        auc_high=0.6,
        brier=0.25,
        constant_brier=0.25,
        gain_low=-0.1,
        gain_high=0.1,
        p_value=0.9,
    )
    measured = {Claim.RESULTS: found}
    show_calibrated("hybrid", Calibrated(made, measured, None))
    __, unmeasured, conclusion = capsys.readouterr().out.splitlines()
    named = [words for words in CLAIM_WORDS.values() if words in unmeasured]
    assert named == [words for claim, words in CLAIM_WORDS.items() if claim != Claim.RESULTS]
    assert conclusion == _(
        "What is known of an answer does not tell whether it is right: no calibration is stored."
    )
