"""The part of a configuration about the causal graph, and how far a question follows it."""

from pydantic import Field

from rag_resources.core.fusion_config import Part, Share, Weight

MAX_DEPTH = 6


class GraphConfig(Part):
    """How the causal graph is searched; only questions about causes follow it.

    Attributes:
        enabled: Whether it is searched.
        max_depth: How many relations a path may have; also the scale of relevance.
        min_relevance: Candidates of lower relevance are left out; see `relevance`.
        weight: Weight of the graph's list in the fusion.
    """

    enabled: bool = False
    max_depth: int = Field(3, ge=1, le=MAX_DEPTH)
    min_relevance: Share = 0.6
    weight: Weight = 0.2

    @property
    def deepest(self) -> int:
        """The longest path whose end is relevant enough; 0 if only the start is."""
        relevant = (
            hops
            for hops in range(self.max_depth, 0, -1)
            if relevance(hops, self.max_depth) >= self.min_relevance
        )
        return next(relevant, 0)


def relevance(hops: int, max_depth: int) -> float:
    """Return the relevance of an entity some relations away: 1 at the start, 0.5 at `max_depth`.

    Property: 24.
    """
    return 1 - 0.5 * hops / max_depth
