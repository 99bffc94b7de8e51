"""The part of a configuration about the weights of retrievers and their fusion.

The rest of a configuration is in `core.configuration`, fusion itself in `core.fusion`.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from rag_resources.core.retrievers import KINDS, RetrieverName
from rag_resources.languages.messages import _

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
        candidates: Whether its chunks become candidates. If not, it only scores those of the other
            retrievers. This needs a fusion that looks scores up, and another retriever by vectors;
            without these, its chunks become candidates all the same.
    """

    weight: Weight = 0.5
    candidates: bool = True


def _checked(
    retrievers: dict[RetrieverName, RetrieverConfig],
) -> dict[RetrieverName, RetrieverConfig]:
    if RetrieverName.GRAPH in retrievers:
        raise ValueError(_("The graph is not named under retrievers but in graph.enabled"))
    for name, retriever in retrievers.items():
        if not retriever.candidates and KINDS[name].searches_by != "vectors":
            raise ValueError(
                _(
                    "{name} does not search by vectors, so it always brings candidates: remove "
                    "“candidates: false”"
                ).format(name=name)
            )
    if all(item.weight == 0 for item in retrievers.values()):
        raise ValueError(_("at least one element of retrievers must have a weight greater than 0"))
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

    Attributes:
        rank_constant: Damping of the top ranks in `rrf`.
    """

    method: Literal["rrf", "weighted", "scaled"] = "scaled"
    rank_constant: int = Field(60, ge=1, le=10_000)

    @property
    def looks_up_scores(self) -> bool:
        """Whether it needs every score of every candidate."""
        return self.method == "scaled"
