"""Which of the configurations that passed their gates serves."""

from collections.abc import Sequence
from uuid import UUID

from rag_resources.core.metrics import SERVED
from rag_resources.core.serving_choice import Passed, best_to_serve
from tests.stored_evaluations import stored


def passed(
    name: str,
    ranks: Sequence[int] = (1, 1, 2, 2),
    *,
    p95_ms: float = 100.0,
    final: int = 5,
    first: int = 0,
) -> Passed:
    """A configuration that found the answers of its questions at these ranks; 0 is a miss.

    Args:
        name: Also its hash.
        ranks: By question.
        p95_ms: Known to 10 ms.
        final: How many results a user gets.
        first: Number of the first question.
    """
    questions = {
        UUID(int=first + number): {
            "hit_rate_at_10": float(0 < rank <= 10),
            SERVED: float(0 < rank <= final),
            "mrr": 1 / rank if rank else 0.0,
        }
        for number, rank in enumerate(ranks)
    }
    means = {
        metric: sum(own[metric] for own in questions.values()) / len(questions)
        for metric in ("hit_rate_at_10", SERVED, "mrr")
    }
    return Passed(
        stored(
            configuration=name,
            config_hash=name,
            hit_rate_at_10=means["hit_rate_at_10"],
            served_hit_rate=means[SERVED],
            mrr=means["mrr"],
            latency_p95_low_ms=p95_ms - 10,
            latency_p95_high_ms=p95_ms + 10,
        ),
        questions,
    )


def chosen(*items: Passed, serving: str | None = None, named: str = "") -> str:
    """The name of what is to serve, which must not depend on the order of the configurations."""
    (name,) = {
        best_to_serve(order, serving=serving, name=named).configuration
        for order in (items, items[::-1])
    }
    return name


def test_answers_that_users_certainly_do_not_get_count_as_lost() -> None:
    """Both rank alike, but one returns a single passage."""
    whole, narrow = passed("whole", [1, 2] * 10), passed("narrow", [1, 2] * 10, final=1)
    assert chosen(narrow, whole, serving="narrow") == "whole"


def test_what_serves_is_replaced_only_by_what_is_shown_to_be_better() -> None:
    """A higher MRR by one question is no evidence; by forty of forty it is."""
    present, lucky = passed("present", [2] * 40), passed("lucky", [2] * 39 + [1])
    better = passed("better", [1] * 40)
    assert chosen(present, lucky, serving="present") == "present"
    assert chosen(present, lucky) == "lucky"
    assert chosen(present, lucky, better, serving="present") == "better"


def test_a_tie_keeps_what_serves_however_fast_another_is() -> None:
    slow, fast = passed("b", p95_ms=500), passed("a", p95_ms=100)
    assert chosen(fast, slow, serving="b") == "b"


def test_among_others_a_p95_decides_only_outside_its_noise() -> None:
    first, near, far = passed("b", p95_ms=115), passed("c", p95_ms=100), passed("d", p95_ms=80)
    assert chosen(near, first) == "b"
    assert chosen(near, first, far, serving="gone") == "c"
