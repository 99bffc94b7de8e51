"""The vectors of one question: made on first use, once per model, within the deadline."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DependencyOpenError
from rag_resources.core.types import Vectors
from rag_resources.providers.protocols import Embedder, Remembering
from rag_resources.resilience.breakers import Breakers
from rag_resources.resilience.deadlines import blames, call_within, share

# Share of the time left, so that a slow model leaves enough for full text. A model's time grows
# with the length of the texts; that of a full-text search hardly does.
_SHARE = 0.5
_LONGEST_SHARE = 0.8
_SHORT_CHARS = 500
_LONG_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Asked:
    """The texts that are searched for one question.

    Attributes:
        queries: The question, then its sub-queries.
        hypothetical_answer: Searched by its vector only, because its words are invented.
    """

    queries: tuple[str, ...]
    hypothetical_answer: str | None = None

    @property
    def time_share(self) -> float:
        """Share of the time left that embedding the texts may use."""
        chars = sum(map(len, (*self.queries, self.hypothetical_answer or "")))
        beyond = (chars - _SHORT_CHARS) / (_LONG_CHARS - _SHORT_CHARS)
        return _SHARE + (_LONGEST_SHARE - _SHARE) * min(1.0, max(0.0, beyond))


@dataclass
class QuestionVectors:
    """Embeds one question with any model.

    Attributes:
        asked: What is embedded.
        embedder: Returns the embedder of a model, by name.
        breakers: Stop calls to a model that has failed too often.
        deadline: Of the retrieval.
    """

    asked: Asked
    embedder: Callable[[str], Embedder]
    breakers: Breakers
    deadline: Deadline
    _made: dict[str, Vectors | Exception] = field(default_factory=dict)

    def of(self, model: str, *, insist: bool = False) -> Vectors:
        """Return `(n_queries, dimension)` vectors, plus one row for a hypothetical answer, if any.

        Args:
            model: Name of the model.
            insist: Whether to call the model although its circuit breaker is open.

        Raises:
            Exception: The model cannot be used or is too late. Every call raises the same error.
        """
        made = self._made.get(model)
        if made is None or (insist and isinstance(made, DependencyOpenError)):
            made = self._made[model] = self._try(model, insist=insist)
        if isinstance(made, Exception):
            raise made
        return made

    def _try(self, model: str, *, insist: bool) -> Vectors | Exception:
        breaker = self.breakers[f"embedding:{model}"]
        deadline = share(self.deadline, self.asked.time_share)
        try:
            with breaker.guard(blames(deadline), insist=insist):
                known = None if deadline.expired else self._at_hand(model)
                return call_within(deadline, lambda: self._embed(model)) if known is None else known
        except Exception as error:  # noqa: BLE001 -- after any error the search by words still runs
            return error

    def _at_hand(self, model: str) -> Vectors | None:
        """Return the vectors if all are cached in memory, so that no thread has to wait."""
        embedder = self.embedder(model)
        if self.asked.hypothetical_answer is not None or not isinstance(embedder, Remembering):
            return None
        return embedder.at_hand(self.asked.queries)

    def _embed(self, model: str) -> Vectors:
        embedder = self.embedder(model)
        vectors = embedder.embed_queries(self.asked.queries)
        if self.asked.hypothetical_answer is None:
            return vectors
        passage = embedder.embed_passages([self.asked.hypothetical_answer])
        return np.concatenate([vectors, passage])
