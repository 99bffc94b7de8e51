"""Warnings about valid retrieval configurations that may not do what their author expects."""

import math

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.languages.messages import _


def notices(config: RetrievalConfig) -> list[str]:
    """Return the warnings about a valid configuration, in Spanish."""
    found: list[str] = []
    weights = {name: config.weighted[name].weight for name in config.searched}
    # The graph's stands elsewhere in a file and is added to theirs, which may well sum to 1.
    own = [weight for name, weight in weights.items() if name in config.retrievers]
    total = math.fsum(own)
    if len(own) > 1 and total > 0 and not math.isclose(total, 1, abs_tol=1e-6):
        all_weights = math.fsum(weights.values())
        shares = ", ".join(f"{name} {weight / all_weights:.3f}" for name, weight in weights.items())
        found.append(
            _(
                "The weights of the retrievers sum to {total}, not 1. Only their proportion "
                "counts: {shares}."
            ).format(total=f"{total:g}", shares=shares)
        )
    depth = config.top_k
    if config.reranks and depth.reranking > depth.retrieval:
        found.append(
            _(
                "top_k.reranking ({reranking}) is larger than top_k.retrieval ({retrieval}). What "
                "is found is re-ranked, but no metric counts beyond the first {retrieval}."
            ).format(reranking=depth.reranking, retrieval=depth.retrieval)
        )
    silent = (name for name in config.searched if not config.weighted[name].candidates)
    found += [
        _(
            "retrievers.{name}.candidates: false has no effect: it takes fusion.method: scaled, "
            "and another retriever by vectors that brings candidates. So {name} brings them, too."
        ).format(name=name)
        for name in silent
        if name not in config.only_scoring
    ]
    return found
