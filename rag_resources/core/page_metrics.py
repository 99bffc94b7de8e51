"""Judges the pages of documents that a question finds, by the pages that its places lie on.

The metrics themselves are in `core.metrics`, the same functions as for notes and passages. Which
page a range of a note comes from belongs in `core.places`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from rag_resources.core.metrics import JudgedRanking
from rag_resources.core.types import RetrievalResult


@dataclass(frozen=True, slots=True, order=True)
class DocumentPage:
    """A page of a document, or a sheet of a workbook.

    Attributes:
        number: From 1.
    """

    document_id: UUID
    number: int

    @property
    def key(self) -> str:
        """The page's key in a ranking."""
        return f"{self.document_id}#{self.number}"


def pages_retrieved(results: Sequence[RetrievalResult]) -> tuple[DocumentPage, ...]:
    """Return the pages of results, best first, with repeats; other notes than sections have none.

    The pages of one passage follow each other in reading order.
    """
    return tuple(
        DocumentPage(result.place.document_id, place.page)
        for result in results
        if result.place
        for place in result.place.places
    )


def judge_pages(
    retrieved: Sequence[DocumentPage], relevant: Collection[DocumentPage]
) -> JudgedRanking:
    """Judge a ranking of pages, in the form that `core.metrics` takes: ranks over distinct pages.

    Args:
        retrieved: Best first, with repeats.
        relevant: At least one page.
    """
    return JudgedRanking(
        relevant=frozenset(page.key for page in relevant),
        retrieved=tuple(page.key for page in retrieved),
    )
