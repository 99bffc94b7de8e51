"""Which known name somebody probably meant."""

import pytest

from rag_resources.core.similar import nearest

KNOWN = ("NOTES_SOURCE", "GOLDEN_SOURCE", "GATE__MARGIN", "UI_PORT")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NOTE_SOURCE", "NOTES_SOURCE"),
        ("notes_souce", "NOTES_SOURCE"),
        ("GATE_MARGIN", "GATE__MARGIN"),
        ("PATH", ""),
        ("", ""),
        ("DATABASE", ""),
    ],
)
def test_a_misspelt_name_finds_the_one_that_was_meant(name: str, meant: str) -> None:
    assert nearest(name, KNOWN) == meant


def test_nothing_is_near_when_nothing_is_known() -> None:
    assert nearest("NOTES_SOURCE", []) == ""
