"""Where the structured logs go."""

import io
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
    structlog.reset_defaults()
