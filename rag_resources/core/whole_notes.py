"""Puts whole notes, which are not chunked yet, among the chunks of their retriever.

The lists are fused in `core.fusion`; there the methods on fixed scales need no such step.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from rag_resources.core.retrievers import (
    DOCUMENTS_OF,
    NOTES_LIST_OF,
    RETRIEVER_OF,
    RankedList,
    RetrieverName,
)
from rag_resources.core.types import Candidate, Ranking, by_score

ScoreRange = tuple[float, float]
"""The scores of a list that stand for 0 and 1 on its fixed scale."""


def merge_whole_notes(
    rankings: Sequence[Ranking], ranges: Sequence[ScoreRange], *, pool: int | None
) -> list[Ranking]:
    """Put whole notes among the chunks that their retriever found for the same question.

    A list of whole notes holds the notes that are not chunked yet. Fused as a list of its own, the
    best of a few such notes would count as much as the best of all chunks, whatever it says. So
    these notes join every list of chunks of their retriever that has candidates, with their scores
    mapped linearly from their list's range to that list's range. If there is none, the list stays.

    Args:
        rankings: The lists, best first.
        ranges: By list, the scores that stand for 0 and 1 on its fixed scale.
        pool: How many candidates a merged list keeps; None: all.

    Returns:
        The lists in their order. Without whole notes they are unchanged.

    Properties: 61.
    """
    joining = {
        _searched(ranking): (ranking, own)
        for ranking, own in zip(rankings, ranges, strict=True)
        if joins_chunks(ranking, rankings)
    }
    merged: list[Ranking] = []
    for ranking, own in zip(rankings, ranges, strict=True):
        notes, theirs = joining.get(_searched(ranking), (None, own))
        if notes is None or not ranking.candidates:
            merged.append(ranking)
        elif ranking is not notes:
            mapped = [
                each._replace(score=_moved(each.score, theirs, own)) for each in notes.candidates
            ]
            together = by_score((*ranking.candidates, *mapped))
            merged.append(replace(ranking, candidates=together[:pool]))
    return merged


def joins_chunks(ranking: Ranking, rankings: Iterable[Ranking]) -> bool:
    """Whether `merge_whole_notes` puts the candidates of a list among chunks."""
    return (
        DOCUMENTS_OF[ranking.name] == "notes"
        and bool(ranking.candidates)
        and any(
            DOCUMENTS_OF[other.name] == "chunks"
            and other.candidates
            and _searched(other) == _searched(ranking)
            for other in rankings
        )
    )


def _searched(ranking: Ranking) -> tuple[RetrieverName, int]:
    return RETRIEVER_OF[ranking.name], ranking.question


def _moved(score: float, source: ScoreRange, target: ScoreRange) -> float:
    if source == target:
        return score
    share = (score - source[0]) / (source[1] - source[0])
    return min(1.0, max(0.0, target[0] + share * (target[1] - target[0])))


def rescored(ranking: Ranking, scores: Mapping[UUID, float]) -> Ranking:
    """Return a list with other scores, best first; a candidate without one scores 0."""
    candidates = [own._replace(score=scores.get(own.chunk_id, 0.0)) for own in ranking.candidates]
    return replace(ranking, candidates=by_score(candidates))


def found_by(candidate: Candidate, merged: RankedList) -> RankedList:
    """Return the list that a candidate of a perhaps merged list was found by."""
    if candidate.chunk_id != candidate.note_id or DOCUMENTS_OF[merged] == "notes":
        return merged
    return NOTES_LIST_OF[RETRIEVER_OF[merged]]
