"""Recency as a part of relevance: how much of its score a passage loses with the age of its note.

The order of equal scores belongs in `core.fusion`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rag_resources.core.fusion import TieBreak, best_first
from rag_resources.core.fusion_config import RecencyConfig
from rag_resources.core.types import ScoredChunk

_DAY = timedelta(days=1)


def weigh_recency(
    chunks: Sequence[ScoredChunk], config: RecencyConfig, *, tie_break: TieBreak = "chunk_id"
) -> list[ScoredChunk]:
    """Lower the scores of chunks of older notes.

    A chunk scores ``score * (1 - weight + weight * 2 ** (-age / half_life))``. Ages are counted
    from the newest note among the chunks: the same chunks get the same scores on any day. A note
    without a date counts as the oldest.

    Args:
        chunks: Best first.
        config: With a weight of 0, nothing changes.
        tie_break: Order of equal scores.

    Returns:
        The same chunks, best first, with their new scores in [0, 1].

    Properties: 1, 3, 43. Source: Li and Croft, CIKM 2003, doi:10.1145/956863.956951.
    """
    dates = [chunk.created_at for chunk in chunks if chunk.created_at]
    if config.weight == 0 or not dates:
        return list(chunks)
    newest = max(dates)
    return best_first(
        (
            replace(chunk, score=chunk.score * _share_kept(chunk.created_at, newest, config))
            for chunk in chunks
        ),
        tie_break,
    )


def _share_kept(created_at: datetime | None, newest: datetime, config: RecencyConfig) -> float:
    if created_at is None:
        return 1 - config.weight
    half_lives = (newest - created_at) / _DAY / config.half_life_days
    return 1 - config.weight * (1 - math.exp2(-half_lives))
