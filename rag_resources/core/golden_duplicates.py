"""Finds golden questions that ask the same thing twice, by the words they share."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from uuid import UUID

from rag_resources.core.golden import GoldenEntry

NEAR_DUPLICATE = 0.8
"""Jaccard similarity from which two questions count as duplicates.

For example, one of five words may be missing from the other question. In the sample, the only pair
above it asks the same thing; the next pair is at 0.45.
"""


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """Two nearly equal questions and their similarity, in [0, 1]."""

    first: GoldenEntry
    second: GoldenEntry
    similarity: float


def near_duplicates(
    entries: Sequence[GoldenEntry],
    lexemes: Mapping[UUID, Set[str]],
    *,
    threshold: float = NEAR_DUPLICATE,
) -> tuple[NearDuplicate, ...]:
    """Find questions that share nearly all their stems, by Jaccard similarity.

    This is cheap, deterministic and explained by the words, unlike a model's cosine. It does not
    find the same question in other words. Stems with and without accents are compared, so a
    question typed without accents counts as the same.

    Args:
        entries: Stored entries.
        lexemes: The stems of every question, by golden id; a question without stems has no
            duplicates.
        threshold: In (0, 1].

    Returns:
        Pairs at or above the threshold, most similar first, ties in the order of the entries.
    """
    stems = [
        (entry, found)
        for entry in entries
        if entry.golden_id and (found := lexemes.get(entry.golden_id))
    ]
    pairs = []
    for (first, ours), (second, theirs) in combinations(stems, 2):
        # The sizes bound the similarity, which rules out most pairs.
        if min(len(ours), len(theirs)) / max(len(ours), len(theirs)) < threshold:
            continue
        similarity = len(ours & theirs) / len(ours | theirs)
        if similarity >= threshold:
            pairs.append(NearDuplicate(first, second, similarity))
    return tuple(sorted(pairs, key=lambda pair: -pair.similarity))
