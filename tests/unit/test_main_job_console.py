"""The console output of the main job, to a file and to a terminal."""

import pytest

from rag_assets.main_job_console import (
    tell_phase,
)
from rag_resources.cli.output import be_quiet
from rag_resources.languages.messages import _


@pytest.mark.parametrize(
    ("quiet", "told"), [(False, _("Indexing: chunks, vectors and graph…") + "\n"), (True, "")]
)
def test_a_log_has_a_line_when_a_phase_begins(
    capsys: pytest.CaptureFixture[str], quiet: bool, told: str
) -> None:
    """At once, not when the buffer is full; a terminal shows progress instead."""
    be_quiet(quiet)
    try:
        tell_phase(_("Indexing: chunks, vectors and graph…"))
    finally:
        be_quiet(False)
    assert capsys.readouterr().out == told
