"""Compares a new reading of a document with the present one, and says whether it loses too much.

The limits are in `core.extraction_config`.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rag_resources.core.documents import Page

FOUND_SHARE = 0.9
ALLOWED_LOSS = 0.02
"""Largest share of the words, or of the passages, that a new reader may lose."""
"""A passage is found again if this share of its runs of words is in the new text."""
RUN_WORDS = 3
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ExtractionDiff:
    """The difference between two readings of a document.

    Words are compared over the whole document, so a word that moved to another page is not lost.
    The parts of a word that is hyphenated at the end of a line count as words.

    Attributes:
        passages: Chunks of the earlier reading.
        passages_kept: Chunks whose text is the same, so that their vectors stay.
        passages_lost: Chunks whose words are no longer found together.
    """

    pages_before: int
    pages_after: int
    pages_changed: int
    words_before: int
    words_gained: int
    words_lost: int
    passages: int
    passages_kept: int
    passages_lost: int

    @property
    def lost_words(self) -> float:
        """Share of the words that are lost."""
        return self.words_lost / self.words_before if self.words_before else 0.0

    @property
    def lost_citations(self) -> float:
        """Share of the passages that are lost."""
        return self.passages_lost / self.passages if self.passages else 0.0

    @property
    def is_within(self) -> bool:
        """Whether no more is lost than allowed; else a person has to accept the new reading."""
        return max(self.lost_words, self.lost_citations) <= ALLOWED_LOSS

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form, which is stored."""
        return {_camel(name): value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "ExtractionDiff":
        """Return what `to_json` wrote."""
        return cls(*(stored[_camel(name)] for name in cls.__slots__))


def compare_readings(
    before: Sequence[Page],
    after: Sequence[Page],
    *,
    passages: Sequence[str],
    new_texts: Sequence[str],
) -> ExtractionDiff:
    """Compare two readings of a document.

    Args:
        before: The pages that are stored.
        after: The pages that would replace them.
        passages: Texts of the present chunks.
        new_texts: Texts of the new sections.
    """
    texts = {page.number: page.text for page in before}
    changed = sum(texts.get(page.number) != page.text for page in after)
    words_before, words_after = _count(before), _count(after)
    folded = "\n".join(" ".join(text.split()) for text in new_texts)
    runs = {run for text in new_texts for run in _runs(text)}
    return ExtractionDiff(
        pages_before=len(before),
        pages_after=len(after),
        pages_changed=changed + len(texts.keys() - {page.number for page in after}),
        words_before=words_before.total(),
        words_gained=(words_after - words_before).total(),
        words_lost=(words_before - words_after).total(),
        passages=len(passages),
        passages_kept=sum(" ".join(each.split()) in folded for each in passages),
        passages_lost=sum(not _is_found(each, runs) for each in passages),
    )


def _count(pages: Sequence[Page]) -> Counter[str]:
    return Counter(word for page in pages for word in _WORD.findall(page.text.casefold()))


def _runs(text: str) -> list[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return [tuple(words[at : at + RUN_WORDS]) for at in range(max(1, len(words) - RUN_WORDS + 1))]


def _is_found(passage: str, runs: set[tuple[str, ...]]) -> bool:
    own = _runs(passage)
    return sum(run in runs for run in own) >= FOUND_SHARE * len(own)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)
