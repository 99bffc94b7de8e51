"""How right answers are, counted by hand, and the gates that judge them."""

from uuid import UUID

import pytest

from rag_resources.core.answer_metrics import (
    EvaluatedAnswer,
    citation_metrics,
    cited_ranges,
    summarize_answers,
)
from rag_resources.core.answers import Answer, CitedSentence, Source
from rag_resources.core.evidence import Evidence, EvidenceState
from rag_resources.core.gate import Interval, judge_share
from rag_resources.core.golden_places import NoteRange, golden_ranges
from rag_resources.core.text import Span
from rag_resources.core.types import RetrievalResult

ONE, OTHER = UUID(int=1), UUID(int=2)
CURRENT = Evidence(EvidenceState.CURRENT)


def result(note: UUID) -> RetrievalResult:
    """A passage from offset 100 on, shown with 20 characters before it."""
    shown = "a" * 60
    return RetrievalResult(
        note, note, shown[:40], shown, 0.5, 0, (20, 60), "semantic", 0.5, start_char=100
    )


def test_what_a_sentence_cites_is_a_range_of_its_note() -> None:
    sentence = CitedSentence("x", 1, Span(30, 35), further=(Source(2, Span(0, 5)),))
    answer = Answer((sentence,))
    ((own, further),) = cited_ranges(answer, [result(ONE), result(OTHER)])
    assert own == NoteRange(ONE, 110, 115)
    assert further == NoteRange(OTHER, 80, 85)


@pytest.mark.parametrize(
    ("cited", "quoted", "precision", "recall", "first", "first_quoted"),
    [
        ([[(ONE, 10, 20)]], (ONE, 10, 20), 1.0, 0.5, 1.0, 1.0),
        ([[(ONE, 20, 30)]], (ONE, 20, 39), 0.0, 0.0, 0.0, 0.0),
        ([[(ONE, 20, 30)]], (ONE, 15, 30), 0.0, 0.0, 0.0, 1.0),
        ([[(OTHER, 0, 5)], [(ONE, 10, 12)]], (OTHER, 0, 50), 0.5, 0.5, 0.0, 0.0),
        (
            *([[(ONE, 0, 5), (ONE, 15, 16)], [(ONE, 41, 42), (ONE, 60, 61)]], (ONE, 0, 5)),
            *(0.5, 1.0, 1.0, 1.0),
        ),
    ],
)
def test_citations_are_judged_by_the_places_that_they_overlap(
    cited: list[list[tuple[UUID, int, int]]],
    quoted: tuple[UUID, int, int],
    precision: float,
    recall: float,
    first: float,
    first_quoted: float,
) -> None:
    """The places are the characters 10 to 20 and 40 to 50 of one note."""
    targets = [NoteRange(ONE, 10, 20), NoteRange(ONE, 40, 50)]
    citations = tuple(tuple(NoteRange(*own) for own in sentence) for sentence in cited)
    assert citation_metrics(citations, [NoteRange(*quoted)], targets) == {
        "citation_precision": precision,
        "citation_recall": recall,
        "first_citation": first,
        "first_quotation": first_quoted,
    }


def test_without_places_a_relevant_note_is_right_wherever_it_is_cited() -> None:
    targets = golden_ranges([ONE], ())
    assert citation_metrics(((NoteRange(ONE, 7, 9),),), (), targets)["citation_precision"] == 1
    assert citation_metrics(((NoteRange(OTHER, 7, 9),),), (), targets)["citation_precision"] == 0


def test_the_figures_are_means_over_the_questions_that_were_answered() -> None:
    cited = ((NoteRange(ONE, 0, 1),),)
    answers = {
        "right": EvaluatedAnswer(cited, {"citation_precision": 1.0, "citation_recall": 1.0}),
        "wrong": EvaluatedAnswer(cited, {"citation_precision": 0.0, "citation_recall": 1.0}),
        "silent": EvaluatedAnswer((), {}),
        "failed": EvaluatedAnswer(None, {}),
    }
    figures = summarize_answers("x", answers, None, allowed_misses=0.1).figures
    assert (figures.questions, figures.answered, figures.failed) == (4, 2, 1)
    assert figures.metrics["citation_precision"].mean == 0.5
    # Wilson, 2 of 2: 2 / (2 + 1.96²).
    recall = figures.metrics["citation_recall"]
    assert (recall.mean, recall.high) == (1, 1)
    assert recall.low == pytest.approx(0.3424, abs=1e-4)
    assert (figures.silence, figures.misses, figures.citation) == (None, None, None)
    nothing = summarize_answers("x", {"silent": answers["silent"]}, None, allowed_misses=0.1)
    assert nothing.figures.metrics == {}


@pytest.mark.parametrize(
    ("share", "low", "state"),
    [(0.6, 0.5, "pass"), (0.5, 0.4, "inconclusive"), (0.49, 0.4, "fail")],
)
def test_a_share_passes_with_its_interval(share: float, low: float, state: str) -> None:
    assert judge_share(share, Interval(low, 1.0), lowest=0.5) == state
