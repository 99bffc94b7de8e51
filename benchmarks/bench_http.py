"""How many questions a second the HTTP API answers, and how late, at a rate that does not wait.

    rag serve          # in another terminal, on a database that is indexed
    python -m benchmarks.bench_http QUESTIONS.json [--rate 30] [--seconds 120]
        [--configuration NAME] [--url http://127.0.0.1:8000] [--key KEY]

Questions are sent at their time whether earlier ones are answered or not, so that a slow server is
seen to be late. Each gets a number that makes it unlike all others, of earlier runs too, so that no
cache answers it. A latency is that from when a question was to be sent to the end of its answer.
"""

import argparse
import asyncio
import json
import time
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from rag_resources.cli.output import say

TIMEOUT_S = 30.0

Streams = tuple[StreamReader, StreamWriter]


@dataclass
class Load:
    """What came back.

    Attributes:
        statuses: Answers by status; 0 for connections that failed or gave no answer in time.
        answered_ms: Latencies of the answers with status 200.
        degraded: How many of those lack a stage.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    answered_ms: list[float] = field(default_factory=list)
    degraded: int = 0


class Client:
    """Posts JSON over as many kept connections as are needed at once.

    Its own, because it shares the processors with the server: httpx takes 30 ms a request once it
    has some hundred connections.

    Args:
        url: Of the server.
        key: Sent as a bearer token; None sends none.
    """

    def __init__(self, url: str, key: str | None) -> None:
        parts = urlsplit(url)
        self._place = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._headers = f"host: {parts.netloc}\r\ncontent-type: application/json\r\n"
        self._headers += f"authorization: Bearer {key}\r\n" if key else ""
        self._idle: list[Streams] = []

    async def post(self, path: str, body: object) -> tuple[int, bytes]:
        """Return the status and the body of the answer.

        Raises:
            OSError: The connection failed.
            EOFError: It ended before the answer did.
        """
        sent = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\n{self._headers}content-length: {len(sent)}\r\n\r\n"
        while self._idle:
            with suppress(ConnectionError, EOFError):  # The server may have closed it meanwhile.
                return await self._post(self._idle.pop(), head.encode() + sent)
        return await self._post(await asyncio.open_connection(*self._place), head.encode() + sent)

    async def _post(self, connection: Streams, request: bytes) -> tuple[int, bytes]:
        reader, writer = connection
        try:
            writer.write(request)
            told = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(told.partition("content-length:")[2].partition("\r\n")[0])
            answer = await reader.readexactly(length)
        except BaseException:
            writer.close()
            raise
        if "connection: close" in told:
            writer.close()
        else:
            self._idle.append(connection)
        return int(told.split(" ", 2)[1]), answer


async def ask_all(
    client: Client, questions: Sequence[str], body: dict[str, Any], count: int, rate: float
) -> Load:
    """Send questions at a rate, and wait for all answers."""
    load = Load()
    first, start = int(time.time()) % 10_000 * 100, time.perf_counter()

    async def ask(number: int) -> None:
        due = start + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        asked = {"query": f"{questions[number % len(questions)]} ({first + number})", **body}
        try:
            async with asyncio.timeout(TIMEOUT_S):
                status, answer = await client.post("/v1/retrieve", asked)
        except (OSError, EOFError, TimeoutError):
            load.statuses[0] += 1
            return
        load.statuses[status] += 1
        if status == HTTPStatus.OK:
            load.answered_ms.append((time.perf_counter() - due) * 1000)
            load.degraded += b'"degraded":[]' not in answer

    await asyncio.gather(*(ask(number) for number in range(count)))
    return load


def shown(load: Load, *, rate: float, seconds: float) -> str:
    """Return a line of what was measured."""
    p50, p95, p99 = (
        np.percentile(load.answered_ms, (50, 95, 99)) if load.answered_ms else (float("nan"),) * 3
    )
    others = {status: count for status, count in sorted(load.statuses.items()) if status != 200}
    return (
        f"{rate:g}/s for {seconds:g} s: {load.statuses[200]} answered"
        f" ({load.degraded} degraded), others {others or 'none'},"
        f" p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms"
    )


async def measure(arguments: argparse.Namespace) -> Load:
    """Ask the questions of a file."""
    read = json.loads(arguments.questions.read_text("utf-8"))
    questions = [entry["query"] for entry in read["entries"]]
    body = {"configuration": arguments.configuration} if arguments.configuration else {}
    client = Client(arguments.url, arguments.key)
    count = int(arguments.rate * arguments.seconds)
    return await ask_all(client, questions, body, count, arguments.rate)


def main() -> None:
    """Measure, and write one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", type=Path, help="a golden dataset")
    parser.add_argument("--rate", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--configuration")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--key")
    arguments = parser.parse_args()
    load = asyncio.run(measure(arguments))
    say(shown(load, rate=arguments.rate, seconds=arguments.seconds))


if __name__ == "__main__":
    main()
