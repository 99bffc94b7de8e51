"""The result of a search, with the values looked up for the fusion; see `retrieval.searching`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from rag_resources.core.retrievers import RetrieverName
from rag_resources.core.types import ModelInfo, Ranking, ScoredChunk, Vectors, Windows
from rag_resources.store.index_state import IndexVersion
from rag_resources.store.passages import Passage


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates found for a question.

    Attributes:
        chunks: Fused, best first; as many as re-ranking, diversity and the results need.
        passages: Their passages, by chunk id; a chunk deleted meanwhile has none.
        windows: The windows of the chunks, by chunk id.
        vectors: Their vectors; None if nothing needs them or they cannot be fetched.
        cosine_range: The range of those vectors' model, as in `ModelInfo`.
        worked: The retrievers that answered.
        failures: Why the others failed.
        rankings: The ranked lists.
        seeds: The best chunks, for retrievers that follow links.
        any_gone: Whether a chunk was deleted after its list was read and before its text was.
        version: Version of the searched index; None if the answer is not cached, or the search
            took several statements.
    """

    chunks: tuple[ScoredChunk, ...] = ()
    passages: Mapping[UUID, Passage] = field(default_factory=dict)
    windows: Mapping[UUID, Windows] = field(default_factory=dict)
    vectors: Mapping[UUID, Vectors] | None = None
    cosine_range: tuple[float, float] = ModelInfo.cosine_range
    worked: tuple[RetrieverName, ...] = ()
    failures: Mapping[RetrieverName, Exception] = field(default_factory=dict)
    rankings: Sequence[Ranking] = ()
    seeds: tuple[UUID, ...] = ()
    any_gone: bool = False
    version: IndexVersion | None = None
