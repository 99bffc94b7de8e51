"""An OpenTelemetry collector for tests, over real HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span


class Collector:
    """An OTLP/HTTP collector on a free port that keeps what it is sent."""

    def __init__(self) -> None:
        self.received: list[ResourceSpans] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path != "/v1/traces":
                    self.send_error(404)
                    return
                collector.received.extend(ExportTraceServiceRequest.FromString(body).resource_spans)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Tests are quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def spans(self) -> dict[str, Span]:
        """What was traced, by name."""
        return {
            traced.name: traced
            for resource in self.received
            for scope in resource.scope_spans
            for traced in scope.spans
        }

    @property
    def service(self) -> str:
        """Who traced it."""
        (resource,) = self.received
        return {item.key: item.value.string_value for item in resource.resource.attributes}[
            "service.name"
        ]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector until the block ends."""
    opened = Collector()
    thread = threading.Thread(target=opened.server.serve_forever, args=(0.01,))
    thread.start()
    yield opened
    opened.server.shutdown()
    opened.server.server_close()
    thread.join()
