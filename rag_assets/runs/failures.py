"""Turns our errors into Dagster's Failure, so that a run and the terminal show their message."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import dagster as dg
from dagster._core.errors import DagsterAssetCheckFailedError
from dagster._core.events import JobFailureData
from dagster._core.execution.plan.objects import ErrorSource, StepFailureData, UserFailureData
from dagster._core.log_manager import (
    DagsterLogManager,
    DagsterLogRecordMetadata,
    construct_log_record_message,
    get_log_record_metadata,
    has_log_record_metadata,
)
from dagster._core.storage.event_log.base import EventLogStorage
from dagster_shared.error import SerializableErrorInfo

from rag_resources.core.errors import RagError
from rag_resources.languages.messages import _, render

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
        return _("it was interrupted. What is done is kept; to go on, repeat it or run “rag run”.")
    reason = error.message.strip() if error else event.message or ""
    return _CLASS_NAME.sub("", reason) or _("it does not say which")


def failure_reasons(events: Sequence[dg.DagsterEvent]) -> str:
    """Return why the failed steps among a run's events failed, each on lines of its own."""
    failures = [event for event in events if event.is_step_failure]
    return "\n".join(failure_reason(told_by_checks(event, lambda: events)) for event in failures)


def told_by_checks(
    event: dg.DagsterEvent, events: Callable[[], Iterable[dg.DagsterEvent]]
) -> dg.DagsterEvent:
    """Return the failure of a step with what the blocking checks that stopped it said.

    Dagster's own message gives only their names. Other events are returned as they are.

    Args:
        event: Of a run.
        events: Called if a check stopped the step; returns events of the run, in any order, with
            all results of checks among them.
    """
    data = event.event_specific_data
    if isinstance(data, JobFailureData) and data.first_step_failure_event:
        first = told_by_checks(data.first_step_failure_event, events)
        return event._replace(event_specific_data=data._replace(first_step_failure_event=first))
    if not isinstance(data, StepFailureData) or not _is_of_check(data):
        return event
    said = "\n".join(
        _("the check “{check}” of “{asset}” has failed. {description}")
        .format(
            check=result.check_name,
            asset=result.asset_key.to_user_string(),
            description=result.description or "",
        )
        .strip()
        for other in events()
        if other.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
        and other.step_key == event.step_key
        and _has_stopped(result := other.asset_check_evaluation_data)
    )
    if not said:
        return event
    told = UserFailureData("blocking_check", said)  # type: ignore[no-untyped-call]
    return event._replace(event_specific_data=data._replace(user_failure_data=told))


def _is_of_check(data: StepFailureData) -> bool:
    return bool(data.error and data.error.cls_name == DagsterAssetCheckFailedError.__name__)


def _has_stopped(result: dg.AssetCheckEvaluation) -> bool:
    is_error = result.severity is dg.AssetCheckSeverity.ERROR
    return bool(result.blocking) and is_error and not result.passed


def in_words(event: dg.DagsterEvent) -> dg.DagsterEvent:
    """Return the failure of a step or run with its message for people alone, without the stack.

    Other events, and unforeseen failures, are returned as they are.
    """
    data = event.event_specific_data
    if isinstance(data, StepFailureData):
        return event._replace(event_specific_data=_step_in_words(data))
    if isinstance(data, JobFailureData) and data.first_step_failure_event:
        first = in_words(data.first_step_failure_event)
        told = data._replace(error=first.step_failure_data.error, first_step_failure_event=first)
        return event._replace(event_specific_data=told)
    return event


def _step_in_words(data: StepFailureData) -> StepFailureData:
    given = data.user_failure_data.description if data.user_failure_data else None
    if not given or not data.error:
        return data
    error = SerializableErrorInfo(message=given, stack=[], cls_name=data.error.cls_name)
    # Dagster requires the cause of an error in users' code; this one has none any more.
    return data._replace(error=error, error_source=ErrorSource.FRAMEWORK_ERROR)


def checks_of(log: EventLogStorage, run_id: str) -> Callable[[], Iterator[dg.DagsterEvent]]:
    """Return how to read the results of a run's checks, for `told_by_checks`."""

    def read() -> Iterator[dg.DagsterEvent]:
        for entry in log.get_logs_for_run(
            run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION
        ):
            yield entry.get_dagster_event()

    return read


def write_in_words(log: DagsterLogManager, instance: dg.DagsterInstance) -> None:
    """Make a log of runs of an instance show failures in words in the terminal."""

    def in_words_for(record: logging.LogRecord) -> bool:
        """Rewrite a record if it is about a failure; every record is kept."""
        metadata = get_log_record_metadata(record) if has_log_record_metadata(record) else None
        event = metadata["dagster_event"] if metadata else None
        if metadata and event and event.is_failure:
            checks = checks_of(instance.event_log_storage, metadata["run_id"] or "")
            words = in_words(told_by_checks(event, checks))
            told: DagsterLogRecordMetadata = {**metadata, "dagster_event": words}
            record.msg = construct_log_record_message(told)
        return True

    for logger in log._dagster_handler._loggers:  # noqa: SLF001 - Dagster has no option for it
        logger.addFilter(in_words_for)
