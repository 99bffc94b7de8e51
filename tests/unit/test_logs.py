"""Where the structured logs go."""

import io
import logging
import sys

import pytest
import structlog
from dagster._utils.log import configure_loggers

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


def test_logs_are_lines_in_a_process_that_dagster_set_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its server for code does so before it loads ours, and runs start as copies of it."""
    before = structlog.get_config()
    structlog.reset_defaults()
    configure_loggers()
    try:
        log_to_stderr()
        structlog.get_logger().warning("graph_left_out", reason="slow")
        written = capsys.readouterr().err
        assert "graph_left_out" in written
        assert "{" not in written
    finally:
        structlog.configure(**before)


def test_what_a_user_asked_is_written_only_where_debugging_was_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for level, expected in ((logging.INFO, False), (logging.DEBUG, True)):
        log_to_stderr(level=level)
        structlog.get_logger().debug("asked", query="¿dónde está la gata?")
        assert ("gata" in capsys.readouterr().err) is expected
