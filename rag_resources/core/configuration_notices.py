"""Warnings about valid retrieval configurations that may not do what their author expects."""

import math

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.messages import Message


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
        found.append(Message.NOTICE_WEIGHTS.format(total=f"{total:g}", shares=shares))
    depth = config.top_k
    if config.reranks and depth.reranking > depth.retrieval:
        found.append(
            Message.NOTICE_DEPTH.format(reranking=depth.reranking, retrieval=depth.retrieval)
        )
    silent = (name for name in config.searched if not config.weighted[name].candidates)
    found += [
        Message.NOTICE_CANDIDATES.format(name=name)
        for name in silent
        if name not in config.only_scoring
    ]
    return found
