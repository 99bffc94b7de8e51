"""What is odd about a graph is said, with what its reviews are worth."""

from dataclasses import replace
from datetime import date

from rag_resources.core.gate import wilson_interval
from rag_resources.core.messages import Message
from rag_resources.graph.people import FEWEST_NOTES, MonthGrowth, Overview, Precision, Shape


def overview(*mentions: int, lonely: int = 0) -> Overview:
    """A graph of ten names, and of ten notes in each month."""
    months = [MonthGrowth(date(2025, n, 1), 10, own, 0) for n, own in enumerate(mentions, start=1)]
    shape = Shape(10, lonely, 0, "Rosa", 3, sum(mentions), 0, 0, 0, 0, 0)
    return Overview(shape, Precision(0, 0, None), months, None)


def test_a_month_of_three_times_the_usual_mentions_or_a_third_is_odd() -> None:
    assert overview(100, 100, 299, 34).problems == []
    (problem,) = overview(100, 100, 100, 310, 30).problems
    assert problem == Message.GRAPH_ODD_MONTHS.format(months="2025-04, 2025-05")
    assert overview(0, 0).problems == overview().problems == []


def test_a_month_of_few_notes_is_not_compared() -> None:
    usual = overview(100, 100, 100)
    few = MonthGrowth(date(2025, 4, 1), FEWEST_NOTES - 1, 0, 0)
    assert replace(usual, months=[*usual.months, few]).problems == []
    enough = replace(few, notes=FEWEST_NOTES)
    assert replace(usual, months=[*usual.months, enough]).problems != []


def test_a_graph_whose_names_lead_nowhere_is_odd() -> None:
    assert overview(100, lonely=9).problems == []
    assert overview(100, lonely=10).problems == [Message.GRAPH_LONELY.format(share=1.0)]


def test_reviews_are_told_with_their_interval() -> None:
    assert Precision(0, 0, None).in_words == Message.GRAPH_UNJUDGED
    found = Precision(45, 38, wilson_interval(38, 45))
    assert "38 de 45" in found.in_words
    assert "0.712 a 0.923" in found.in_words


def test_an_empty_graph_is_told_apart() -> None:
    empty = Overview(Shape(0, 0, 0, None, 0, 0, 0, 0, 0, 0, 0), Precision(0, 0, None), [], None)
    assert empty.is_empty
    assert not overview(1).is_empty
