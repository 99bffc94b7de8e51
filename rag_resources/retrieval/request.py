"""One retrieval request, shared by all stages; and the checks that refuse a question."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import InvalidParameterError, InvalidQueryError
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.query import MAX_QUERY_CHARS
from rag_resources.core.text import is_blank
from rag_resources.core.types import ScoredChunk
from rag_resources.core.wording import says_something
from rag_resources.languages.messages import _

MAX_RESULTS = 50

SEEDS = 20
"""How many of the best chunks a search of the graph starts from."""


@dataclass(frozen=True, slots=True)
class Request:
    """A question and how to answer it.

    Attributes:
        query: The question, without characters that a database or model cannot read.
        top_k: How many results.
        distinct_notes: For evaluations: return further results too, as many as it takes to cover
            this many distinct notes, but none beyond the depth that the configuration searches
            (`top_k.retrieval`); 0 otherwise.
        cached: Whether caches may be read and filled.
        language: Of the question.
    """

    query: str
    config: RetrievalConfig
    tenant: str
    filters: RetrievalFilters
    top_k: int
    distinct_notes: int
    deadline: Deadline
    cached: bool
    language: str = "es"

    @property
    def pool(self) -> int:
        """How many candidates each list holds."""
        scored = self.config.score.passages if self.config.score else 0
        return max(self.config.top_k.retrieval, self.top_k, scored)

    @property
    def shown(self) -> int:
        """How many of the best chunks put the results in their final order, at most."""
        config = self.config
        considered = config.top_k.reranking if config.reranks or config.diversity_weight else 0
        searched = config.top_k.retrieval if self.distinct_notes else 0
        seeds = SEEDS if config.searches_graph else 0
        scored = config.score.passages if config.score else 0
        return max(self.top_k, considered, searched, seeds, scored)

    def count_needed(self, chunks: Sequence[ScoredChunk]) -> int:
        """Return how many of the best chunks make up the results."""
        returned = min(self.top_k, len(chunks))
        return max(returned, self._count_ranked(chunks)) if self.distinct_notes else returned

    def _count_ranked(self, chunks: Sequence[ScoredChunk]) -> int:
        searched = chunks[: self.config.top_k.retrieval]
        seen = set()
        for count, chunk in enumerate(searched, start=1):
            seen.add(chunk.note_id)
            if len(seen) == self.distinct_notes:
                return count
        return len(searched)


def check_query(query: str) -> None:
    """Refuse a question that cannot be searched.

    Raises:
        InvalidQueryError: It is blank or too long.
    """
    if is_blank(query.replace("\0", " ")):
        raise InvalidQueryError(_("The question is empty. Write what you want to find."))
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidQueryError(
            _("The question has {length} characters; the maximum is {maximum}.").format(
                length=len(query), maximum=MAX_QUERY_CHARS
            )
        )


def check_words(query: str, language: str) -> None:
    """Refuse a question of only emoji, signs or stop words, whose results would be random.

    Raises:
        InvalidQueryError: It has no other word and no number.
    """
    if not says_something(query, language):
        raise InvalidQueryError(
            _(
                "The question has no word to search for: only signs, emoji or words such as "
                "“what” or “of”. Say what it is about."
            )
        )


def check_top_k(top_k: int) -> None:
    """Refuse a number of results out of range.

    Raises:
        InvalidParameterError: It is less than 1 or more than `MAX_RESULTS`.
    """
    if not 1 <= top_k <= MAX_RESULTS:
        raise InvalidParameterError(
            _("The number of passages must be between 1 and {maximum}: {value}.").format(
                value=top_k, maximum=MAX_RESULTS
            ),
            top_k=top_k,
        )


def searchable(query: str) -> str:
    """Remove what a database or a model cannot read from a question: NUL, lone surrogates."""
    return query.replace("\0", " ").encode("utf-8", "replace").decode()
