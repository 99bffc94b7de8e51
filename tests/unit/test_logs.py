"""Where the structured logs go."""

import io
import logging
import sys

import pytest
import structlog

from rag_resources.logs import log_to_stderr


def test_logs_follow_stderr_when_it_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed stream of before must not fail what only wanted to log."""
    first, second = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", first)
    log_to_stderr()
    structlog.get_logger().warning("before")
    monkeypatch.setattr(sys, "stderr", second)
    first_text = first.getvalue()
    first.close()
    structlog.get_logger().warning("after")
    assert "before" in first_text
    assert "after" in second.getvalue()


def test_what_a_user_asked_is_written_only_where_debugging_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for level, expected in ((logging.INFO, False), (logging.DEBUG, True)):
        log_to_stderr(level=level)
        structlog.get_logger().debug("asked", query="¿dónde está la gata?")
        assert ("gata" in capsys.readouterr().err) is expected
