"""A web server of documents on a real socket, which fails in the ways that servers do."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers with what the test put at the path."""

    protocol_version = "HTTP/1.1"
    server: "WebServer"

    def do_GET(self) -> None:
        """Note the request, then answer it."""
        self.server.asked[self.path].append(dict(self.headers))
        answer = self.server.answers.get(self.path)
        if answer is None:
            self.send(404, b"")
        else:
            answer(self)

    def send(self, status: int, body: bytes, **headers: str) -> None:
        """Send a whole answer; `_` in the name of a header stands for `-`."""
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class WebServer(ThreadingHTTPServer):
    """The server.

    Attributes:
        answers: By path.
        asked: The headers of each request, by path.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, Answer] = {}
        self.asked: defaultdict[str, list[dict[str, str]]] = defaultdict(list)

    def url(self, path: str) -> str:
        """The URL of a path."""
        return f"http://127.0.0.1:{self.server_port}{path}"

    def put(self, path: str, body: bytes, **headers: str) -> str:
        """Answer with a file, conditional requests included; return its URL."""

        def answer(handler: Handler) -> None:
            etag = headers.get("ETag")
            if etag and handler.headers.get("If-None-Match") == etag:
                handler.send(304, b"", ETag=etag)
                return
            handler.send(200, body, **headers)

        self.answers[path] = answer
        return self.url(path)

    def fail_first(self, path: str, *failures: Answer) -> None:
        """Answer the first requests of a path otherwise than later ones."""
        usual, rest = self.answers[path], list(failures)
        self.answers[path] = lambda handler: (rest.pop(0) if rest else usual)(handler)


def cut_after(body: bytes, count: int, **headers: str) -> Answer:
    """Announce a whole file, send its beginning, and hang up."""

    def answer(handler: Handler) -> None:
        handler.send_response(200)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body[:count])
        handler.close_connection = True

    return answer


@contextmanager
def web_server() -> Iterator[WebServer]:
    """Serve until the end of the block."""
    with WebServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
