"""Traces as a real collector receives them over OTLP/HTTP, or does not."""

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from structlog.testing import capture_logs

from rag_resources import telemetry
from rag_resources.retrieval.stages import Stages
from rag_resources.telemetry import flush, span
from tests.trace_collector import Collector, collecting

PROCESS_TIMEOUT_S = 30


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


@pytest.fixture
def unused_url() -> str:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Variables of a process of its own: what it traces with is built anew, and shut down."""
    for variable in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(variable)
    _forget()
    yield monkeypatch
    provider = telemetry._provider()
    if provider:
        provider.shutdown()
    _forget()


def _forget() -> None:
    telemetry._provider.cache_clear()
    telemetry._built.cache_clear()
    for name in telemetry._NOISY:
        logger = logging.getLogger(name)
        for own in [each for each in logger.filters if isinstance(each, telemetry._Seldom)]:
            logger.removeFilter(own)


def _attributes(traced: Span) -> dict[str, object]:
    return {
        item.key: getattr(item.value, str(item.value.WhichOneof("value")))
        for item in traced.attributes
    }


def _run(script: str, **variables: str) -> str:
    """Run a script in a process of its own, with these variables of OpenTelemetry alone."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env=inherited | variables,
        capture_output=True,
        text=True,
        timeout=PROCESS_TIMEOUT_S,
        check=True,
    )
    return ended.stdout + ended.stderr


def test_the_stages_of_a_retrieval_are_children_of_its_span(
    environment: pytest.MonkeyPatch, collector: Collector
) -> None:
    environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    stages = Stages(config_hash=lambda: "0123456789abcdef", query="¿?")
    with span("retrieval", strategy="hybrid", top_k=5, contextual=True):
        with stages.run("embed", texts=2):
            pass
        with stages.run("search"), span("database"):
            pass
    flush()
    spans = collector.spans
    root = spans["retrieval"]
    assert root.parent_span_id == b""
    assert _attributes(root) == {"strategy": "hybrid", "top_k": 5, "contextual": True}
    assert _attributes(spans["retrieval.embed"]) == {"texts": 2}
    assert spans["retrieval.embed"].parent_span_id == root.span_id
    assert spans["retrieval.search"].parent_span_id == root.span_id
    assert spans["database"].parent_span_id == spans["retrieval.search"].span_id
    assert {traced.trace_id for traced in spans.values()} == {root.trace_id}
    assert collector.service == "brain-sync-rag"


def test_the_traces_endpoint_alone_and_a_service_name_are_heard(
    environment: pytest.MonkeyPatch, collector: Collector
) -> None:
    environment.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{collector.url}/v1/traces")
    environment.setenv("OTEL_SERVICE_NAME", "notas")
    with span("retrieval"):
        pass
    flush()
    assert collector.service == "notas"


def test_an_error_is_traced_by_its_type_alone(
    environment: pytest.MonkeyPatch, collector: Collector
) -> None:
    environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    with suppress(ValueError), span("retrieval"), span("search"):
        raise ValueError("SELECT secreto")
    flush()
    for traced in collector.spans.values():
        assert traced.status.code == Status.STATUS_CODE_ERROR
        assert _attributes(traced) == {"error.type": "ValueError"}
        assert b"secreto" not in traced.SerializeToString()
    assert len(collector.spans) == 2


def test_without_a_collector_configured_nothing_is_imported_or_sent() -> None:
    """Every retrieval passes here: what is off must cost nothing."""
    script = (
        "import sys\n"
        "from rag_resources.telemetry import flush, span\n"
        "with span('retrieval', strategy='hybrid'):\n"
        "    pass\n"
        "flush()\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    assert _run(script, OTEL_SERVICE_NAME="notas", OTEL_EXPORTER_OTLP_ENDPOINT="").strip() == "[]"


def test_a_collector_that_is_away_is_complained_about_once_without_its_address(
    environment: pytest.MonkeyPatch, unused_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", unused_url)
    environment.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    for _ in range(5):
        with span("retrieval"):
            pass
        flush()
    (record,) = caplog.records
    assert record.levelno >= logging.WARNING
    assert "127.0.0.1" not in record.getMessage()


def test_a_silent_collector_does_not_keep_a_process_from_ending() -> None:
    """It accepts the connection and never answers, with a minute allowed to."""
    script = (
        "from rag_resources.telemetry import flush, span\n"
        "with span('retrieval'):\n"
        "    pass\n"
        "flush()"
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        said = _run(script, OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_EXPORTER_OTLP_TIMEOUT="60")
    assert "Traceback" not in said


def test_a_forked_process_traces_too(collector: Collector) -> None:
    script = (
        "import os\n"
        "from rag_resources.telemetry import flush, span\n"
        "with span('parent'):\n"
        "    pass\n"
        "if child := os.fork():\n"
        "    _, status = os.waitpid(child, 0)\n"
        "    flush()\n"
        "    raise SystemExit(status)\n"
        "with span('child'):\n"
        "    pass\n"
        "flush()"
    )
    _run(script, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert set(collector.spans) == {"parent", "child"}


def test_a_variable_that_opentelemetry_refuses_switches_traces_off(
    environment: pytest.MonkeyPatch, collector: Collector
) -> None:
    environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    environment.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    with capture_logs() as logs:
        for _ in range(2):
            with span("retrieval"):
                pass
            flush()
    assert [log["event"] for log in logs] == ["telemetry_off"]
    assert collector.received == []
