"""Turns our errors into Dagster's Failure, so that a run shows their message."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from rag_resources.core.errors import RagError


@contextmanager
def told_as_failure() -> Iterator[None]:
    """Fail the step with the error's message and without retries, which would not help.

    Raises:
        dagster.Failure: Chained to the error.
    """
    try:
        yield
    except RagError as error:
        raise dg.Failure(error.message, allow_retries=False) from error


def failure_reason(event: dg.DagsterEvent) -> str:
    """Return why a step failed: the text of its Failure, or the error that caused it."""
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return data.user_failure_data.description
    error = data.error
    while error and error.cause:
        error = error.cause
    return error.message.strip() if error else event.message or ""
