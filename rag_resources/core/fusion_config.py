"""The part of a configuration about weights: of retrievers, their fusion, and recency.

The rest of a configuration is in `core.configuration`, fusion itself in `core.fusion`, the effect
of recency in `core.recency`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rag_resources.core.messages import Message
from rag_resources.core.retrievers import KINDS, RetrieverName

# -0.0 is stored as 0.0; otherwise two equal configurations would have different hashes.
Weight = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), AfterValidator(abs)]
MODEL_NAME = r"^[a-z0-9_]{1,40}$"
ModelName = Annotated[str, Field(pattern=MODEL_NAME)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), AfterValidator(abs)]


class Part(BaseModel):
    """A group of fields of a configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class RetrieverConfig(Part):
    """The weight of one retriever's lists in the fusion, and whether it brings candidates.

    Attributes:
        model_weights: Weights by embedding model, for models that need a different one.
        candidates: Whether its chunks become candidates. If not, it only scores those of the other
            retrievers. This needs a fusion that looks scores up, and another retriever by vectors;
            without these, its chunks become candidates all the same.
    """

    weight: Weight = 0.5
    candidates: bool = True
    model_weights: dict[ModelName, Weight] = Field({}, max_length=50)

    def weight_of(self, model: str) -> float:
        """Return the weight of a list found by a model's vectors; "" is a full-text list."""
        return self.model_weights.get(model, self.weight)


def _checked(
    retrievers: dict[RetrieverName, RetrieverConfig],
) -> dict[RetrieverName, RetrieverConfig]:
    if RetrieverName.GRAPH in retrievers:
        raise ValueError(Message.RETRIEVER_GRAPH)
    for name, retriever in retrievers.items():
        by_vectors = KINDS[name].searches_by == "vectors"
        if retriever.model_weights and not by_vectors:
            raise ValueError(Message.RETRIEVER_WITHOUT_MODEL.format(name=name))
        if not retriever.candidates and not by_vectors:
            raise ValueError(Message.RETRIEVER_CANDIDATES.format(name=name))
    if all(0 in (item.weight, *item.model_weights.values()) for item in retrievers.values()):
        raise ValueError(Message.RETRIEVER_WEIGHTS_ZERO)
    return retrievers


Retrievers = Annotated[
    dict[RetrieverName, RetrieverConfig], Field(min_length=1), AfterValidator(_checked)
]

DEFAULT_RETRIEVERS = {
    RetrieverName.SEMANTIC: RetrieverConfig(),
    RetrieverName.FULLTEXT: RetrieverConfig(),
}


class FusionConfig(Part):
    """How the ranked lists are fused.

    `rrf` is reciprocal rank fusion. `weighted` is a convex combination of the scores after min-max
    normalisation of each list, where an absent document scores 0 (Bruch et al., arXiv 2210.11934).
    `scaled` is a convex combination of all scores of all candidates on fixed scales: each cosine is
    mapped from its model's range, so chunks, windows and notes not yet chunked are comparable.

    The three weights are an earlier spelling of `RetrievalConfig.retrievers`. They are read, moved
    there by `in_one_spelling`, and never written.

    Attributes:
        rank_constant: Damping of the top ranks in `rrf`.
        semantic_weight: Earlier spelling of `retrievers.semantic.weight`.
        fulltext_weight: Earlier spelling of `retrievers.fulltext.weight`.
        semantic_weights: Earlier spelling of `retrievers.semantic.model_weights`.
    """

    method: Literal["rrf", "weighted", "scaled"] = "scaled"
    rank_constant: int = Field(60, ge=1, le=10_000)
    semantic_weight: Weight | None = Field(None, exclude=True)
    fulltext_weight: Weight | None = Field(None, exclude=True)
    semantic_weights: dict[ModelName, Weight] = Field({}, max_length=50, exclude=True)

    @property
    def looks_up_scores(self) -> bool:
        """Whether it needs every score of every candidate."""
        return self.method == "scaled"

    @model_validator(mode="after")
    def _some_weight(self) -> "FusionConfig":
        if self.fulltext_weight == 0 and 0 in (
            self.semantic_weight,
            *self.semantic_weights.values(),
        ):
            raise ValueError(Message.ALL_WEIGHTS_ZERO)
        return self


class RecencyConfig(Part):
    """How much newer notes are favoured.

    Attributes:
        weight: Share of its score that the oldest of notes loses; 0 turns it off.
        half_life_days: Age, in days, at which a note has lost half of that share.
    """

    weight: Share = 0.0
    half_life_days: float = Field(90.0, gt=0, le=36_500, allow_inf_nan=False)


def in_one_spelling(
    fusion: FusionConfig, retrievers: Mapping[RetrieverName, RetrieverConfig]
) -> tuple[FusionConfig, dict[RetrieverName, RetrieverConfig]]:
    """Move weights of the earlier spelling to the retrievers, where they take precedence.

    Raises:
        ValueError: The resulting weights are not valid.
    """
    moved = dict(retrievers)
    for name, weight, model_weights in (
        (RetrieverName.SEMANTIC, fusion.semantic_weight, fusion.semantic_weights),
        (RetrieverName.FULLTEXT, fusion.fulltext_weight, {}),
    ):
        if weight is not None or model_weights:
            old = moved.get(name, RetrieverConfig())
            moved[name] = RetrieverConfig(
                candidates=old.candidates,
                weight=old.weight if weight is None else weight,
                model_weights={**old.model_weights, **model_weights},
            )
    rest = fusion.model_copy(
        update={"semantic_weight": None, "fulltext_weight": None, "semantic_weights": {}}
    )
    return rest, _checked(moved)


def in_earlier_spelling(
    retrievers: Mapping[RetrieverName, RetrieverConfig],
) -> dict[str, Any] | None:
    """Return the weights in the earlier spelling of `fusion`; None if it cannot express them."""
    if retrievers.keys() != {RetrieverName.SEMANTIC, RetrieverName.FULLTEXT}:
        return None
    if not all(item.candidates for item in retrievers.values()):
        return None
    semantic = retrievers[RetrieverName.SEMANTIC]
    return {
        "semantic_weight": semantic.weight,
        "semantic_weights": dict(semantic.model_weights),
        "fulltext_weight": retrievers[RetrieverName.FULLTEXT].weight,
    }


def respelled(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored configuration with its weights in the current spelling and later fields."""
    fusion = {**(stored.get("fusion") or {})}
    from rag_resources.core.graph_config import GraphConfig  # It imports `Part` from this module.

    later = {"recency": RecencyConfig().model_dump(), "graph": GraphConfig().model_dump()}
    stored = {**later, **stored, "fusion": fusion}
    if "transformation" in stored:
        stored["transformation"] = {"coordinated": True, **stored["transformation"]}
    if "retrievers" in stored:
        own = {name: {"candidates": True, **item} for name, item in stored["retrievers"].items()}
        return {**stored, "retrievers": own}
    if "semantic_weight" not in fusion:
        return stored
    semantic = {
        "candidates": True,
        "weight": fusion.pop("semantic_weight"),
        "model_weights": fusion.pop("semantic_weights", {}),
    }
    fulltext = {
        "candidates": True,
        "weight": fusion.pop("fulltext_weight", None),
        "model_weights": {},
    }
    return {
        **stored,
        "fusion": fusion,
        "retrievers": {"semantic": semantic, "fulltext": fulltext},
    }
