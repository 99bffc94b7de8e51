"""What is said where there are too few questions to measure confidence."""

import pytest

from rag_resources.cli.calibrate import CLAIM_WORDS, show_calibrated
from rag_resources.core.calibration import FEWEST, Calibrated
from rag_resources.core.confidence import Calibration
from rag_resources.core.messages import Message


def test_the_hint_says_how_many_questions_are_needed() -> None:
    assert str(FEWEST) in Message.CONFIDENCE_NONE


def test_what_cannot_be_measured_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """With every claim named; nothing is stored."""
    made = Calibration(claims={}, questions=8, unanswerable=0)
    show_calibrated("hybrid", Calibrated(made, {}, {}, None))
    shown = capsys.readouterr().out
    assert shown.count(str(FEWEST)) == 1
    assert all(words in shown for words in CLAIM_WORDS.values())
    assert Message.CALIBRATE_NOTHING in shown
