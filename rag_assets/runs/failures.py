"""Turns our errors into Dagster's Failure, so that a run shows their message."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from rag_resources.core.errors import RagError
from rag_resources.core.messages import Message
from rag_resources.languages.messages import render

INTERRUPTED = ("DagsterExecutionInterruptedError", "KeyboardInterrupt")
_CLASS_NAME = re.compile(r"^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Failure)(?::\s*|$)")
"""The class name that Dagster writes before an exception's message; it means nothing to a user."""


@contextmanager
def told_as_failure(language: str | None = None) -> Iterator[None]:
    """Fail the step with the error's message and without retries, which would not help.

    Args:
        language: The language of a reader of answers; None for operators.

    Raises:
        dagster.Failure: Chained to the error.
    """
    try:
        yield
    except RagError as error:
        message = render(error.message, language) if language else error.message
        raise dg.Failure(message, allow_retries=False) from error


def failure_reason(event: dg.DagsterEvent) -> str:
    """Return why a step failed: the text of its Failure, or the error that caused it."""
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return data.user_failure_data.description
    error = data.error
    while error and error.cause:
        error = error.cause
    if error and error.cls_name in INTERRUPTED:
        return Message.RUN_INTERRUPTED
    reason = error.message.strip() if error else event.message or ""
    return _CLASS_NAME.sub("", reason) or Message.CLI_NO_REASON
