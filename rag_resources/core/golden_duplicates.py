"""Golden questions that are one question asked twice, by the words they share."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from uuid import UUID

from rag_resources.core.golden import GoldenEntry

NEAR_DUPLICATE = 0.8
"""Jaccard similarity from which two questions are one asked twice.

Of five words one may be another's addition. In the sample the only pair above it asks the same
thing; the next one is at 0.45.
"""


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """Two questions that say nearly the same, and how nearly, in [0, 1]."""

    first: GoldenEntry
    second: GoldenEntry
    similarity: float


def near_duplicates(
    entries: Sequence[GoldenEntry],
    lexemes: Mapping[UUID, Set[str]],
    *,
    threshold: float = NEAR_DUPLICATE,
) -> tuple[NearDuplicate, ...]:
    """Find questions that share nearly all their stems, by their Jaccard similarity.

    Cheap, deterministic and explained by the words themselves, which a cosine of a model is not;
    the same question in other words is beyond it. Stems with and without accents count, so that a
    question typed without them is the same one.

    Args:
        entries: Stored.
        lexemes: The stems of every question, by golden id; a question without any is like no other.
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
        # The sizes alone bound the similarity: most pairs end here.
        if min(len(ours), len(theirs)) / max(len(ours), len(theirs)) < threshold:
            continue
        similarity = len(ours & theirs) / len(ours | theirs)
        if similarity >= threshold:
            pairs.append(NearDuplicate(first, second, similarity))
    return tuple(sorted(pairs, key=lambda pair: -pair.similarity))
