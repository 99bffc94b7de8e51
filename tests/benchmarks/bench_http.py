"""How many questions a second the HTTP API answers, and how late, at a rate that does not wait.

    rag serve          # in another terminal, on a database that is indexed
    python -m tests.benchmarks.bench_http QUESTIONS.json [--rate 30] [--seconds 120]
        [--configuration NAME] [--url http://127.0.0.1:8000] [--key KEY]

Questions are sent at their time whether earlier ones are answered or not, so that a slow server is
seen to be late. Each is made unlike all others, so that no cache answers it. A latency is that from
when a question was to be sent to the end of its answer.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from rag_resources.cli.output import say

TIMEOUT_S = 30.0


@dataclass
class Load:
    """What came back.

    Attributes:
        statuses: Answers by status; 0 for connections that failed.
        answered_ms: Latencies of the answers with status 200.
        degraded: How many of those lack a stage.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    answered_ms: list[float] = field(default_factory=list)
    degraded: int = 0


async def ask_all(
    client: httpx.AsyncClient,
    questions: Sequence[str],
    body: dict[str, Any],
    count: int,
    rate: float,
) -> Load:
    """Send questions at a rate, and wait for all answers."""
    load = Load()
    start = time.perf_counter()

    async def ask(number: int) -> None:
        due = start + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        query = f"{questions[number % len(questions)]} ({number})"
        try:
            response = await client.post("/v1/retrieve", json={"query": query, **body})
        except httpx.TransportError:
            load.statuses[0] += 1
            return
        load.statuses[response.status_code] += 1
        if response.status_code == httpx.codes.OK:
            load.answered_ms.append((time.perf_counter() - due) * 1000)
            load.degraded += bool(response.json()["metadata"]["degraded"])

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
    headers = {"authorization": f"Bearer {arguments.key}"} if arguments.key else {}
    body = {"configuration": arguments.configuration} if arguments.configuration else {}
    limits = httpx.Limits(max_connections=500, max_keepalive_connections=500)
    async with httpx.AsyncClient(
        base_url=arguments.url, headers=headers, timeout=TIMEOUT_S, limits=limits
    ) as client:
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
