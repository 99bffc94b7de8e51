"""The retrieval configuration: one frozen, validated model for files, run config and requests.

Reading files belongs in `rag_resources.configurations`; the environment in
`rag_resources.settings`.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, model_validator

from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.fusion_config import (
    DEFAULT_RETRIEVERS,
    FusionConfig,
    ModelName,
    Part,
    RetrieverConfig,
    Retrievers,
    Share,
    Weight,
)
from rag_resources.core.graph_config import GraphConfig
from rag_resources.core.retrievers import KINDS, RetrieverName, VectorKind
from rag_resources.core.validation import validated
from rag_resources.core.yaml_text import Lines
from rag_resources.languages.messages import _


class Strategy(StrEnum):
    """How a question is searched."""

    SEMANTIC = "semantic"
    FULLTEXT = "fulltext"
    HYBRID = "hybrid"
    HYBRID_RERANK = "hybrid+rerank"

    def asks_for(self, retriever: RetrieverName) -> bool:
        """Whether a configured retriever is used; only `semantic` and `fulltext` restrict them."""
        alone = {Strategy.SEMANTIC: "vectors", Strategy.FULLTEXT: "words"}.get(self)
        return alone is None or KINDS[retriever].searches_by == alone


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """Sizes of chunks, in the unit of the strategy."""

    longest: int
    overlap: int
    shortest: int


class ChunkingConfig(Part):
    """How notes are cut into chunks.

    Attributes:
        strategy: `sentences` fills chunks with sentences, up to `max_tokens`. `structure` ends them
            between paragraphs, rows of a table or sentences, in this order, near `target`.
        max_tokens: Longest chunk of `sentences`, in tokens of `core.text.count_tokens`.
        overlap_tokens: Length that neighbouring chunks share.
        min_tokens: Shortest chunk, unless the note is shorter or the sentence too long.
        target: Wanted length of chunks of `structure`, in characters, as are the following.
        min: Shortest chunk.
        max: Longest chunk.
        overlap: Length that neighbouring chunks share.
    """

    max_tokens: int = Field(512, ge=16, le=8192)
    overlap_tokens: int = Field(50, ge=0)
    min_tokens: int = Field(100, ge=0)
    strategy: Literal["sentences", "structure"] = "sentences"
    target: int = Field(1200, ge=16, le=8192)
    min: int = Field(400, ge=0)
    max: int = Field(2000, ge=16, le=8192)
    overlap: int = Field(150, ge=0)

    @model_validator(mode="after")
    def _fits(self) -> "ChunkingConfig":
        problems = []
        if self.overlap_tokens >= self.max_tokens:
            problems.append(_("overlap_tokens must be less than max_tokens"))
        if self.min_tokens >= self.max_tokens:
            problems.append(_("min_tokens must be less than max_tokens"))
        fits = self.min <= self.target <= self.max and max(self.min, self.overlap) < self.max
        if not fits:
            problems.append(_("must be min <= target <= max, min < max and overlap < max"))
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def limits(self) -> ChunkLimits:
        """The sizes of the strategy."""
        if self.strategy == "structure":
            return ChunkLimits(self.max, self.overlap, self.min)
        return ChunkLimits(self.max_tokens, self.overlap_tokens, self.min_tokens)

    @property
    def hashed(self) -> dict[str, Any]:
        """The settings that change chunks: those of the strategy.

        The settings of `sentences` keep the names from before there were strategies, so that their
        hash stays the same.
        """
        if self.strategy == "structure":
            return self.model_dump(include={"strategy", "target", "min", "max", "overlap"})
        return self.model_dump(include={"max_tokens", "overlap_tokens", "min_tokens"})


class RerankingConfig(Part):
    """How the best candidates of the strategy `hybrid+rerank` are re-ranked.

    Attributes:
        enabled: False keeps the fused order.
        method: Name of a re-ranker: `sentences` (embedded) or `llm`.
        model: Embedding model of `sentences`: a fast one, since it embeds every sentence of the
            candidates while the user waits.
        weight: Share of the re-ranker's score in the final score; the rest is the fused score.
        batch_size: Passages per call of a language model.
        timeout_ms: Longest wait; after that the fused order is kept.
    """

    enabled: bool = True
    method: Literal["sentences", "llm"] = "sentences"
    model: ModelName = "use_multilingual"
    weight: Weight = 0.2
    batch_size: int = Field(5, ge=1, le=50)
    timeout_ms: int = Field(5_000, ge=1, le=5_000)


class ScoreConfig(Part):
    """A second embedding model, which scores what the first finds; its name alone will do.

    Attributes:
        model: Its name. Vectors that it lacks are made when they are asked for, and kept.
        weight: Share of its score in the final score; the rest is the fused score.
        passages: How many of the best passages it scores.
    """

    model: ModelName
    weight: Weight = 0.7
    passages: int = Field(50, ge=2, le=100)

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return {"model": value} if isinstance(value, str) else value


class TransformationConfig(Part):
    """Which texts are searched besides the question itself.

    Attributes:
        enabled: False searches only the question.
        decomposition: Search the sub-questions of a question too.
        coordinated: Whether a single question is cut into sub-questions where another
            interrogative begins, as in "¿cuánto costó y por qué se rompió?".
        hyde: Search a hypothetical answer to an abstract question too (Gao et al., arXiv
            2212.10496); has no effect without a language model.
    """

    enabled: bool = True
    decomposition: bool = True
    coordinated: bool = True
    hyde: bool = True


class ContextConfig(Part):
    """How many sentences around a chunk come with it."""

    sentences_before: int = Field(2, ge=0, le=20)
    sentences_after: int = Field(2, ge=0, le=20)


class TopKConfig(Part):
    """Numbers of candidates per retriever, of candidates to re-rank at most, and of results."""

    retrieval: int = Field(20, ge=1, le=500)
    reranking: int = Field(10, ge=1, le=100)
    final: int = Field(5, ge=1, le=50)

    @model_validator(mode="after")
    def _narrows(self) -> "TopKConfig":
        if self.final > self.retrieval:
            raise ValueError(_("top_k.final cannot be greater than top_k.retrieval"))
        return self


class RetrievalConfig(Part):
    """Everything that changes what a question returns.

    Attributes:
        unit: `chunks`, or `notes`: whole notes by their vectors alone, for a baseline.
        strategy: `semantic` uses the retrievers that search by vectors, `fulltext` those that
            search by words, `hybrid` all of them.
        retrievers: The retrievers by name, and the weight of each.
        model: Embedding model of the chunks (of the notes when the unit is notes).
        similarity_threshold: Cosine below which a passage is dropped; None: the model's own.
        score: A second embedding model that scores what `model` finds; None uses none. Without it
            the hash is what it was before there were second models.
        contextual: Whether the contextual vectors are searched too.
        graph: How the causal graph is searched beside the retrievers.
        diversity_weight: Weight of diversity against relevance in the order of the results
            (maximal marginal relevance); 0 turns it off.
    """

    unit: Literal["chunks", "notes"] = "chunks"
    strategy: Strategy = Strategy.HYBRID
    retrievers: Retrievers = DEFAULT_RETRIEVERS
    model: ModelName = "e5_small"
    score: ScoreConfig | None = Field(None, exclude_if=lambda value: value is None)
    similarity_threshold: Share | None = None
    contextual: bool = True
    fusion: FusionConfig = FusionConfig()
    graph: GraphConfig = GraphConfig()
    reranking: RerankingConfig = RerankingConfig()
    transformation: TransformationConfig = TransformationConfig()
    diversity_weight: Share = 0.0
    context: ContextConfig = ContextConfig()
    top_k: TopKConfig = TopKConfig()

    @model_validator(mode="after")
    def _searches(self) -> "RetrievalConfig":
        if not self.searched:
            raise ValueError(
                _("no element of retrievers fits the strategy {strategy}").format(
                    strategy=self.strategy
                )
            )
        return self

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> "RetrievalConfig":
        """Return a copy with some fields replaced; what follows from them is worked out anew."""
        copied = super().model_copy(update=update, deep=deep)
        copied._forget()  # noqa: SLF001 -- its own class
        return copied

    def _forget(self) -> None:
        """Forget what was worked out from the fields, which a question asks for again and again."""
        for name in ("searched", "dumped", "config_hash"):
            self.__dict__.pop(name, None)

    @cached_property
    def searched(self) -> tuple[RetrieverName, ...]:
        """The retrievers that are used, in the order of `KINDS`."""
        if self.unit == "notes":
            return (RetrieverName.SEMANTIC,)
        return tuple(
            name for name in KINDS if name in self.weighted and self.strategy.asks_for(name)
        )

    @property
    def weighted(self) -> Mapping[RetrieverName, RetrieverConfig]:
        """The weight of each retriever, with that of the graph if it is enabled."""
        if not self.graph.enabled or self.unit == "notes":
            return self.retrievers
        return {**self.retrievers, RetrieverName.GRAPH: RetrieverConfig(weight=self.graph.weight)}

    @property
    def uses_vectors(self) -> bool:
        """Whether the question is embedded."""
        return any(KINDS[name].searches_by == "vectors" for name in self.searched)

    @property
    def needs_vectors(self) -> bool:
        """Whether the vectors of its model are needed: to search, or to order the results."""
        return self.uses_vectors or self.diversity_weight > 0

    @property
    def vector_kinds(self) -> frozenset[VectorKind]:
        """The kinds of its model's vectors that it searches, or orders its results by."""
        if self.unit == "notes":
            return frozenset({VectorKind.NOTE} if self.needs_vectors else ())
        kinds = {VectorKind.CHUNK} if self.diversity_weight > 0 else set()
        if RetrieverName.SEMANTIC in self.searched:
            kinds |= {VectorKind.CHUNK, *([VectorKind.CONTEXTUAL] if self.contextual else [])}
        if RetrieverName.WINDOWS in self.searched:
            kinds.add(VectorKind.WINDOW)
        return frozenset(kinds)

    @property
    def searches_windows(self) -> bool:
        """Whether the windows of chunks are searched."""
        return VectorKind.WINDOW in self.vector_kinds

    @property
    def only_scoring(self) -> frozenset[RetrieverName]:
        """The retrievers that only score the candidates of others."""
        silent = {name for name in self.searched if not self.weighted[name].candidates}
        finding = any(
            KINDS[name].searches_by == "vectors" for name in self.searched if name not in silent
        )
        return frozenset(silent if finding and self.fusion.looks_up_scores else ())

    @property
    def searches_graph(self) -> bool:
        """Whether the causal graph is searched."""
        return RetrieverName.GRAPH in self.searched

    @property
    def without_graph(self) -> "RetrievalConfig":
        """The same configuration with the graph switched off."""
        return self.model_copy(update={"graph": GraphConfig()})

    @property
    def reranks(self) -> bool:
        """Whether candidates are re-ranked."""
        return self.strategy is Strategy.HYBRID_RERANK and self.reranking.enabled

    @property
    def models(self) -> tuple[str, ...]:
        """The embedding models that a question needs, except that of notes not chunked yet."""
        used = [self.model] if self.uses_vectors else []
        if self.score:
            used.append(self.score.model)
        if self.reranks and self.reranking.method == "sentences":
            used.append(self.reranking.model)
        return tuple(used)

    @cached_property
    def dumped(self) -> str:
        """Every field, as JSON with sorted keys."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True)

    @cached_property
    def config_hash(self) -> str:
        """The first 16 hex digits of SHA-256 over the canonical JSON. Property 29."""
        return canonical_hash(self.model_dump(mode="json"))


class Role(StrEnum):
    """The purpose of a configuration's evaluation."""

    CANDIDATE = "candidate"
    REFERENCE = "reference"


class NamedConfiguration(Part):
    """A retrieval configuration under a name: a file in a folder of configurations.

    Attributes:
        name: Also the asset key `evaluation_results/<name>`.
        description: One sentence in Spanish for people.
        role: The gate of a candidate blocks; that of a reference only warns.
    """

    name: str = Field(pattern=r"^[a-z0-9_]{1,40}$")
    description: str = Field(min_length=1)
    role: Role = Role.CANDIDATE
    retrieval: RetrievalConfig = RetrievalConfig()


def canonical_hash(value: Any) -> str:
    """Hash a JSON value by its canonical form: keys sorted at every depth, no white space.

    Returns:
        The first 16 hex digits of SHA-256. Equal values hash equal whatever their key order.
    """
    canonical = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def parse_configuration(raw: Any, *, origin: str, lines: Lines | None = None) -> NamedConfiguration:
    """Validate a named configuration.

    Args:
        raw: The content of the file or request.
        origin: Where it comes from, for the message.
        lines: Of the file, if it is one, for the message.

    Raises:
        InvalidConfigurationError: It is invalid; every problem is named by its path.
    """
    return validated(NamedConfiguration, raw, origin, lines)


def parse_retrieval(raw: Any, *, origin: str) -> RetrievalConfig:
    """Validate a retrieval configuration. Same errors as `parse_configuration`."""
    return validated(RetrievalConfig, raw, origin)


def usable_retrieval(stored: Mapping[str, Any], *, origin: str) -> RetrievalConfig | None:
    """Read a stored configuration; None if a version that allowed more options stored it."""
    try:
        return parse_retrieval(dict(stored), origin=origin)
    except InvalidConfigurationError:
        return None


def nested_fields(dotted: Mapping[str, Any]) -> dict[str, Any]:
    """Turn `{"fusion.method": "rrf"}` into `{"fusion": {"method": "rrf"}}`."""
    nested: dict[str, Any] = {}
    for path, value in dotted.items():
        *parents, last = path.split(".")
        part = nested
        for parent in parents:
            if not isinstance(part.get(parent), dict):
                part[parent] = {}
            part = part[parent]
        part[last] = value
    return nested


def with_overrides(config: RetrievalConfig, overrides: Mapping[str, Any]) -> RetrievalConfig:
    """Return the configuration with some fields replaced, at any depth.

    Args:
        config: The configuration to start from.
        overrides: Nested mapping of the fields to change; None values change nothing. `weights`
            has the sum of the weights of the retrievers by `vectors` and by `words`.

    Raises:
        InvalidConfigurationError: The result is invalid; every problem is named.
    """
    if not overrides:
        return config
    changes = dict(overrides)
    weights = changes.pop("weights", None) or {}
    merged = _merge(config.model_dump(), changes)
    for kind, weight in weights.items():
        own = [name for name in config.retrievers if KINDS[name].searches_by == kind]
        before = math.fsum(config.retrievers[name].weight for name in own)
        for name in own if weight is not None else ():
            share = config.retrievers[name].weight / before if before else 1 / len(own)
            merged["retrievers"][name]["weight"] = weight * share
    return parse_retrieval(merged, origin=_("values given in the call"))


def _merge(base: dict[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in overrides.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), dict):
            merged[key] = _merge(merged[key], value)
        elif value is not None:
            merged[key] = value
    return merged
