"""Turns our errors into Dagster's Failure, so that a run and the terminal show their message."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import dagster as dg
from dagster._core.errors import DagsterAssetCheckFailedError

from rag_resources.core.errors import RagError
from rag_resources.languages.messages import _, render

INTERRUPTED = ("DagsterExecutionInterruptedError", "KeyboardInterrupt")
_CLASS_NAME = re.compile(r"^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Failure)(?::\s*|$)")
"""The class name that Dagster writes before an exception's message; it means nothing to a user."""


@contextmanager
def told_as_failure(language: str | None = None) -> Iterator[None]:
    """Fail the step with the error's message and without retries, which would not help.

    The run's page shows the message first: a chained error would come before it, with its stack.

    Args:
        language: The language of a reader of answers; None for operators.

    Raises:
        dagster.Failure: With the message of the error.
    """
    try:
        yield
    except RagError as error:
        message = render(error.message, language) if language else error.message
        raise dg.Failure(message, allow_retries=False) from None


def failure_reason(event: dg.DagsterEvent) -> str:
    """Return why a step failed: the text of its Failure, or the error that caused it."""
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return data.user_failure_data.description
    error = data.error
    while error and error.cause:
        error = error.cause
    if error and error.cls_name in INTERRUPTED:
        return _("it was interrupted. What is done is kept; to go on, repeat it or run “rag run”.")
    reason = error.message.strip() if error else event.message or ""
    return _CLASS_NAME.sub("", reason) or _("it does not say which")


def failure_reasons(events: Iterable[dg.DagsterEvent]) -> str:
    """Return why a run failed: what its blocking checks said, and the reasons of its other steps.

    Args:
        events: Of the run, with its results of checks and failures of steps.
    """
    reasons = []
    for event in events:
        if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            result = event.asset_check_evaluation_data
            if (
                result.blocking
                and result.severity is dg.AssetCheckSeverity.ERROR
                and not result.passed
            ):
                asset = result.asset_key.to_user_string()
                told = _("the check “{check}” of “{asset}” has failed. {description}").format(
                    check=result.check_name, asset=asset, description=result.description or ""
                )
                reasons.append(told.strip())
        elif event.is_step_failure:
            error = event.step_failure_data.error
            if not error or error.cls_name != DagsterAssetCheckFailedError.__name__:
                reasons.append(failure_reason(event))
    return "\n".join(reasons)
