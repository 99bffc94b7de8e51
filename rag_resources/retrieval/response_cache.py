"""Cached answers, valid for the index version that they were found in.

Each search returns the version that it has searched. So only a question with a cached answer has to
read the version first. What makes two requests equal is in `retrieval.cache`; the version is in
`store.index_state`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import psycopg
import structlog

from rag_resources.core.errors import DatabaseError
from rag_resources.core.types import RetrievalResponse
from rag_resources.database.readers import Reads
from rag_resources.providers.cache import Cache
from rag_resources.retrieval.cache import KeptAnswer, query_key
from rag_resources.retrieval.request import Request
from rag_resources.retrieval.stages import Stages
from rag_resources.store.index_state import IndexVersion, read_index_version

# Share of the time left for reading the version; if that is slow, the search needs the time.
_SHARE = 0.2

_log = structlog.get_logger()


class AnswerCache:
    """Answers a repeated question without searching, while nothing it depends on has changed.

    Args:
        database: The searched database.
        cache: Where answers are kept.
        models: The models that contribute to an answer besides the configuration's, by role.
    """

    def __init__(
        self, database: Reads, cache: Cache[KeptAnswer], models: Mapping[str, str]
    ) -> None:
        self._database = database
        self._cache = cache
        self._models = models

    def get_or_make(
        self,
        request: Request,
        stages: Stages,
        make: Callable[[], tuple[RetrievalResponse, IndexVersion | None]],
    ) -> RetrievalResponse:
        """Return the cached answer, or make one and cache it if it is complete and up to date.

        Args:
            request: The question.
            stages: The question's stages.
            make: Returns an answer, and the version of the index that was searched. If the version
                is None, it is unknown, and the answer is not cached.
        """
        with stages.run("cache"):
            key = query_key(request, self._models)
            kept = self._cache.get(key)
            if kept is not None and kept.version == self._version(request):
                return replace(kept.response, cached=True)
        response, version = make()
        if version and not response.degraded and not response.error:
            self._cache.put(key, KeptAnswer(response, version))
        return response

    def _version(self, request: Request) -> IndexVersion | None:
        """Return the present version; None if unknown, so that no cached answer is used."""
        deadline = request.deadline.within(request.deadline.remaining_ms * _SHARE)
        try:
            with self._database.autocommit(deadline) as connection:
                return read_index_version(connection, request.tenant)
        except (DatabaseError, psycopg.Error) as error:
            _log.warning("answer_cache_skipped", error=type(error).__name__)
            return None
