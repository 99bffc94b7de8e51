"""Waiting in tests for a condition: bounded, and no longer than necessary."""

import threading
from collections.abc import Callable

import pytest

PATIENCE_S = 30.0
_POLL_S = 0.01


def wait_until(condition: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    """Wait until a condition holds; fail the test if it does not in time."""
    tick = threading.Event()
    for _ in range(int(seconds / _POLL_S)):
        if condition():
            return
        tick.wait(_POLL_S)
    pytest.fail("condition not met in time")
