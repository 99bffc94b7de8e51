"""Sends traces of retrievals to an OpenTelemetry collector, if the environment names one.

The variables are OpenTelemetry's own. `OTEL_EXPORTER_OTLP_ENDPOINT` (or its `…_TRACES_ENDPOINT`)
switches traces on; `OTEL_SERVICE_NAME`, `OTEL_BSP_…` and the SDK's others are respected. Without
an endpoint OpenTelemetry is not even imported. Latencies in responses are in `retrieval.stages`,
logs in `logs`.
"""

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

SERVICE_NAME = "brain-sync-rag"
FLUSH_S = 1.5
QUIET_S = 300.0
"""Seconds between two warnings of one part of the SDK; a collector may be down for days."""

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NOISY = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk._shared_internal",
)
_NOTHING = nullcontext()
_building = threading.Lock()

Attribute = str | bool | int | float


def span(name: str, **attributes: Attribute) -> AbstractContextManager[None]:
    """Trace a block, as a child of the span around it in this thread.

    An error is passed on; only its type is recorded, because its message may quote the user. Costs
    less than a microsecond when traces are off.

    Args:
        name: One of few values: a stage, not a question.
        attributes: Never a question's text, SQL or a secret.
    """
    provider = _provider()
    return _NOTHING if provider is None else _traced(provider, name, attributes)


@contextmanager
def continued(traceparent: str | None) -> Iterator[None]:
    """Make the spans of a block children of a caller's span, if traces are on.

    Args:
        traceparent: The header of W3C Trace Context; None or an invalid one continues nothing.
    """
    if traceparent is None or _provider() is None:
        yield
        return
    from opentelemetry.context import attach, detach
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    token = attach(TraceContextTextMapPropagator().extract({"traceparent": traceparent}))
    try:
        yield
    finally:
        detach(token)


def flush() -> None:
    """Send the recorded traces; waits at most `FLUSH_S` seconds for the collector."""
    provider = _provider()
    if provider is not None:
        # The SDK ignores its own timeout: opentelemetry-python issue 4568.
        sender = threading.Thread(target=provider.force_flush, daemon=True)
        sender.start()
        sender.join(FLUSH_S)


@contextmanager
def _traced(
    provider: "TracerProvider", name: str, attributes: dict[str, Attribute]
) -> Iterator[None]:
    from opentelemetry.trace import StatusCode

    tracer = provider.get_tracer("rag_resources")
    with tracer.start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield
        except Exception as error:
            current.set_status(StatusCode.ERROR)
            current.set_attribute("error.type", type(error).__qualname__)
            raise


@cache
def _provider() -> "TracerProvider | None":
    """Return this process's provider, built for the first span; None if traces are off."""
    if not any(os.environ.get(variable) for variable in _ENDPOINTS):
        return None
    with _building:
        return _built()


@cache
def _built() -> "TracerProvider | None":
    import structlog  # loads rich, which `--help` should not wait for

    try:
        return _build()
    except Exception as error:  # noqa: BLE001 -- a bad OTEL_… variable must not stop a retrieval
        structlog.get_logger().warning("telemetry_off", error=type(error).__name__)
        return None


def _build() -> "TracerProvider":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    for name in _NOISY:
        logging.getLogger(name).addFilter(_Seldom())
    named = {"service.name": SERVICE_NAME} | dict(OTELResourceDetector().detect().attributes)
    # No flush at exit: there the SDK would wait for a dead collector without limit. See `flush`.
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class _Seldom(logging.Filter):
    """Passes one record every `QUIET_S` seconds; keeps only the type of an exception."""

    def __init__(self) -> None:
        super().__init__()
        self._quiet_until = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Decide whether to pass a record of the SDK, and remove the collector's address."""
        now = time.monotonic()
        if now < self._quiet_until:
            return False
        self._quiet_until = now + QUIET_S
        if isinstance(record.args, tuple):
            record.args = tuple(
                type(value).__name__ if isinstance(value, Exception) else value
                for value in record.args
            )
        return True
