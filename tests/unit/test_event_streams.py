"""Events of an answer while nothing comes."""

import asyncio
from collections.abc import AsyncGenerator

from rag_resources.api.routes.answers import HEARTBEAT, _events
from rag_resources.api.searching import _next
from rag_resources.application.answers import Asked
from rag_resources.core.citations import AnswerSentence


def test_a_stream_on_which_nothing_comes_is_kept_alive_by_a_comment() -> None:
    async def silence() -> AsyncGenerator[AnswerSentence | Asked | None, None]:
        yield await _next(asyncio.Queue(), 0.01)

    async def sent() -> list[str]:
        return [each async for each in _events(silence(), "es")]

    assert asyncio.run(sent()) == [HEARTBEAT]
