"""The console output of the main job, to a file and to a terminal."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rag_assets.main_job_console import (
    Unread,
    evaluating,
    tell_phase,
    tell_unread_again,
    why_replaced,
)
from rag_resources.cli.output import be_quiet
from rag_resources.configurations import Configurations
from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig
from rag_resources.languages.messages import _
from rag_resources.store.promotions import Promotion


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


def test_what_could_not_be_read_is_repeated_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its table has scrolled away by then; nothing is said if there is nothing."""
    tell_unread_again(Unread(records=0, documents=0))
    assert capsys.readouterr() == ("", "")
    tell_unread_again(Unread(records=2, documents=1))
    told = capsys.readouterr().err.splitlines()
    assert told == [
        _(
            "Rejected records: {count}. They are further up and in “rag status”, each with its "
            "reason."
        ).format(count=2),
        _(
            "Documents that could not be read: {count}. They are in “rag document list”, each "
            "with its reason."
        ).format(count=1),
    ]


def test_what_is_evaluated_is_named_however_many_they_are() -> None:
    assert evaluating(["mia"]) == "Evaluando: mia…"
    assert evaluating(["mia", "otra"]) == "Evaluando: mia, otra…"
    assert evaluating([]) == _("Deciding which configuration serves…")


def test_the_reason_why_something_no_longer_serves() -> None:
    """Its gate, a better one, its model, or an edit of its file."""
    config = RetrievalConfig(model="m")
    item = NamedConfiguration(name="mia", description="La mía", retrieval=config)
    moment = datetime(2025, 1, 1, tzinfo=UTC)
    before = Promotion("mia", {}, config.config_hash, "m", None, moment, None)
    files = Configurations({"mia": item})
    assert why_replaced(before, files, {"mia": "p95", "otra": "no"}) == "p95"
    assert why_replaced(before, files, {"otra": "no"}) == _(
        "it passes the gate, but the new one is the best of those that pass"
    )
    off = files.switched_on(lambda _: False)
    assert why_replaced(before, off, {}) == _(
        "its model, {model}, is no longer in EMBEDDING_MODELS"
    ).format(model="m")
    assert why_replaced(before, Configurations({}), {}) == _(
        "it was a version that is in no file any more, and “rag run” chooses among those of the "
        "files"
    )
    edited = replace(before, config_hash="otra")
    assert why_replaced(edited, files, {"mia": "p95"}) == _(
        "it was a version that is in no file any more, and “rag run” chooses among those of the "
        "files"
    )
