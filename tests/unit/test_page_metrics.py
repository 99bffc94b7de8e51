"""Metrics per page of a document, by hand."""

from uuid import UUID

import pytest

from rag_resources.core.evaluation import QueryOutcome, summarize
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.page_metrics import DocumentPage, judge_pages, pages_retrieved
from rag_resources.core.places import DocumentPlace, Place
from rag_resources.core.types import RetrievalResult

PLAN, ACT = UUID(int=1), UUID(int=2)


def page(number: int, document: UUID = PLAN) -> DocumentPage:
    return DocumentPage(document, number)


def result(document: UUID | None, *pages: int) -> RetrievalResult:
    own = UUID(int=sum(pages) + 10)
    place = document and DocumentPlace(document, (), tuple(Place(number) for number in pages))
    return RetrievalResult(
        chunk_id=own,
        note_id=own,
        content="x",
        expanded_content="x",
        score=1.0,
        chunk_index=0,
        matched_bounds=(0, 1),
        retrieval_method="fulltext",
        original_score=1.0,
        place=place or None,
    )


def outcome(number: int, relevant: set[DocumentPage], *found: DocumentPage) -> QueryOutcome:
    entry = GoldenEntry(f"¿{number}?", (PLAN,), "r", "factual", 1, golden_id=UUID(int=number))
    return QueryOutcome(entry, (), 1.0, {}, retrieved_pages=found, pages=frozenset(relevant))


def test_the_pages_of_results_follow_their_order_and_notes_have_none() -> None:
    found = pages_retrieved([result(PLAN, 2, 3), result(None), result(ACT, 1)])
    assert found == (page(2), page(3), page(1, ACT))


@pytest.mark.parametrize(
    ("found", "rank"),
    [
        ((page(3),), 1),
        ((page(2), page(2), page(3)), 2),  # A page takes one rank, however many passages it has.
        ((page(3, ACT), page(1)), None),  # The same number in another document.
        ((), None),
    ],
)
def test_the_rank_of_a_page_counts_distinct_pages(
    found: tuple[DocumentPage, ...], rank: int | None
) -> None:
    assert judge_pages(found, {page(3)}).first_relevant_rank == rank


def test_an_evaluation_is_summarized_over_the_questions_that_name_pages() -> None:
    pages = summarize(
        [
            outcome(1, {page(3)}, page(1), page(3)),  # second: MRR 1/2
            outcome(2, {page(1), page(2)}, page(2)),  # one of two: recall 1/2, MRR 1
            outcome(3, {page(9)}),  # missed
            outcome(4, set(), page(1)),  # names no page
        ]
    ).pages
    assert pages.queries == 3
    assert pages.metrics["hit_rate_at_1"] == pytest.approx(1 / 3)
    assert pages.metrics["hit_rate_at_10"] == pytest.approx(2 / 3)
    assert pages.metrics["mrr"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert pages.metrics["recall_at_10"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert pages.first_ranks[str(UUID(int=1))] == 2
