"""The queue in front of the models: who is admitted, and who is refused at once."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from rag_resources.api.admission import Admission
from rag_resources.api.problems import ProblemError

THREADS = 2


def ask(admission: Admission, work: Callable[[float], object], *, age_s: float = 0.0) -> object:
    """Ask with a request that arrived some seconds ago."""
    return asyncio.ensure_future(admission.run(time.monotonic() - age_s, work))


async def statuses(asked: list[object]) -> list[int]:
    """Return 200 or the status of the refusal of each."""
    found = await asyncio.gather(*asked, return_exceptions=True)  # type: ignore[call-overload]
    return [each.status if isinstance(each, ProblemError) else 200 for each in found]


@pytest.mark.parametrize("waiting", [0, 3])
def test_no_more_wait_than_may(waiting: int) -> None:
    held = threading.Event()

    async def scenario() -> list[int]:
        admission = Admission(threads=THREADS, waiting=waiting)
        asked = [ask(admission, lambda _: held.wait(10)) for _ in range(THREADS + waiting + 2)]
        await asyncio.sleep(0)  # All have asked.
        held.set()
        told = await statuses(asked)
        admission.close()
        return told

    assert asyncio.run(scenario()) == [200] * (THREADS + waiting) + [503, 503]


def test_who_would_probably_be_late_is_refused_although_there_is_room() -> None:
    """After requests of 1.2 s each of two threads serves one within a second, and no third."""

    async def scenario() -> tuple[list[int], list[int]]:
        admission = Admission(threads=THREADS, waiting=100)
        for _ in range(40):
            admission._usual_s += 0.1 * (1.2 - admission._usual_s)
        held = threading.Event()
        asked = [ask(admission, lambda _: held.wait(10)) for _ in range(THREADS + 3)]
        await asyncio.sleep(0)  # All have asked.
        held.set()
        busy = await statuses(asked)
        idle = await statuses([ask(admission, lambda _: None)])
        admission.close()
        return busy, idle

    busy, idle = asyncio.run(scenario())
    assert busy == [200] * (THREADS + 1) + [503, 503]
    assert idle == [200]


def test_who_has_waited_too_long_already_is_refused() -> None:
    async def scenario() -> list[int]:
        admission = Admission(threads=THREADS, waiting=100)
        told = await statuses([ask(admission, lambda _: None, age_s=3.0)])
        admission.close()
        return told

    assert asyncio.run(scenario()) == [503]


def test_how_long_requests_take_is_learned_and_forgotten() -> None:
    async def scenario() -> tuple[float, float]:
        admission = Admission(threads=THREADS, waiting=100)
        for _ in range(3):
            await ask(admission, lambda _: time.sleep(0.2))  # type: ignore[misc]
        slow = admission._usual_s
        for _ in range(60):
            await ask(admission, lambda _: None)  # type: ignore[misc]
        admission.close()
        return slow, admission._usual_s

    slow, quick = asyncio.run(scenario())
    assert slow > 0.05
    assert quick < slow / 10
