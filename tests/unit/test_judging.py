"""Judgements: claims and what supports them, the numbers over many, agreement with labels."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from rag_resources.core.answers import Answer
from rag_resources.core.judging import (
    FULL_COSINE,
    JudgedAnswer,
    JudgeInfo,
    Judgement,
    claims,
    could_support,
    evidence,
    is_quote,
    judgement_of,
    relevance,
    summarize_judgements,
)
from rag_resources.evaluation.judge import EmbeddedJudge
from rag_resources.providers.embedded_use import USEEmbedder
from tests.embedders import HashEmbedder

LABELS = Path(__file__).parents[1] / "data" / "judge_labels.json"
INFO = JudgeInfo("embedded", "m", "v", "a")
QUESTION = "¿Cuánto cuesta la bomba?"


def test_the_claims_of_an_answer_are_its_sentences_that_say_something() -> None:
    assert claims("Sí. Costó 415 €. ¿Y qué? Pagó Andreu.") == ["Costó 415 €.", "Pagó Andreu."]
    assert claims("") == claims("No.") == []


def test_evidence_is_sentences_neighbouring_pairs_and_clauses() -> None:
    assert evidence(["Uno.\nDos. Tres."]) == ["Uno.", "Dos.", "Tres.", "Uno. Dos.", "Dos. Tres."]
    assert evidence(["Llueve. Hay sopa: de ajo.", "Llueve."]) == [
        "Llueve.",
        "Hay sopa: de ajo.",
        "Llueve. Hay sopa: de ajo.",
        "Hay sopa",
        "de ajo.",
    ]


@pytest.mark.parametrize(
    ("claim", "piece", "supports"),
    [
        ("La bomba cuesta 415 €.", "Con la bomba son 415 €.", True),
        ("La bomba cuesta 451 €.", "Con la bomba son 415 €.", False),
        ("La pagó Andreu Soler.", "La pagó andreu soler.", True),
        ("La pagó Maite Soler.", "La pagó Andreu Soler.", False),
        ("No la pagó Andreu.", "La pagó Andreu.", False),
        ("La pagó Andreu.", "Nunca la pagó Andreu.", False),
        ("La bomba pierde aceite.", "La bomba está en el taller.", False),
        ("415.", "Son 415 €.", True),
        ("La bomba cuesta.", "La bomba cuesta dinero.", True),
    ],
)
def test_evidence_has_the_numbers_names_denials_and_new_words_of_a_claim(
    claim: str, piece: str, supports: bool
) -> None:
    assert could_support(claim, piece, QUESTION) is supports


def test_four_words_of_five_are_enough_and_a_piece_may_be_the_name_alone() -> None:
    claim = "tomates, lechuga, cebolla, pepino y pan"
    assert could_support(claim, "Hay tomates, lechuga, cebolla y pan.", "¿?")
    assert not could_support(claim, "Hay tomates, lechuga y pan.", "¿?")
    assert could_support("de Andreu Soler", "Andreu Soler", "¿?")


def test_a_quote_stands_in_a_passage_in_whole_words() -> None:
    passages = ["Hoy\nllamé. **Son 415 €.** Fin."]
    assert is_quote("Hoy llamé.", passages)
    assert is_quote("Son 415 €.", passages)
    assert not is_quote("Son 41", passages)
    assert not is_quote("lamé.", passages)


def test_relevance_grows_with_the_cosine_and_ends_at_1() -> None:
    assert [relevance(cosine) for cosine in (-1, 0, FULL_COSINE / 2, FULL_COSINE, 1)] == [
        0,
        0,
        0.5,
        1,
        1,
    ]


def test_faithfulness_is_the_share_of_supported_claims_and_of_none_is_missing() -> None:
    judgement = judgement_of(["a", "b", "c", "d"], [True, False, True, True], 0.5)
    assert judgement == Judgement(0.75, 0.5, ("b",))
    assert judgement_of([], [], 0.5) == Judgement(None, 0.5)


def test_failures_are_missing_and_counted_not_zeros() -> None:
    answer = Answer()
    summary = summarize_judgements(
        INFO,
        {
            "1": JudgedAnswer(answer, Judgement(1.0, 0.8)),
            "2": JudgedAnswer(answer, Judgement(None, 0.4)),
            "3": JudgedAnswer(answer, None, "No responde."),
            "4": JudgedAnswer(None, None, "No responde."),
        },
    )
    assert (summary.judged, summary.failures) == (2, 2)
    assert (summary.faithfulness, summary.answer_relevance) == (1.0, pytest.approx(0.6))
    assert summary.info is INFO
    assert summary.answers["3"].failure == "No responde."


# --- The embedded judge -----------------------------------------------------------------------


def test_an_answer_that_only_quotes_gets_no_faithfulness() -> None:
    """It is true to its passage by construction, also if it tells of the wrong person."""
    embedder = HashEmbedder()
    judge = EmbeddedJudge(embedder)
    judgement = judge.judge("¿Pagó Blas?", "Son 415 €. Pagó Ana.", ["Son 415 €. Pagó Ana."])
    assert (judgement.faithfulness, judgement.unsupported) == (None, ())
    assert judgement.answer_relevance > 0
    assert embedder.texts == ["Son 415 €. Pagó Ana."]


def test_the_embedded_judge_names_the_claims_without_support() -> None:
    judgement = EmbeddedJudge(HashEmbedder()).judge(
        QUESTION, "Son 415 €. Regalan aceite.", ["Hoy llamé al taller. Son 415 €."]
    )
    assert (judgement.faithfulness, judgement.unsupported) == (0.5, ("Regalan aceite.",))


class Labelled(NamedTuple):
    """A label, and what the judge makes of it."""

    split: str
    kind: str
    faithful: tuple[bool, bool]
    relevant: tuple[bool, bool]


@pytest.fixture(scope="module")
def labelled() -> list[Labelled]:
    """The labelled answers as the embedded judge, with its real model, sees them."""
    judge = EmbeddedJudge(USEEmbedder())
    made = []
    for case in json.loads(LABELS.read_text("utf-8"))["cases"]:
        for answer in case["answers"]:
            judgement = judge.judge(case["question"], answer["text"], case["context"])
            made.append(
                Labelled(
                    case["split"],
                    answer["kind"],
                    (answer["faithful"], not judgement.unsupported),
                    (answer["relevant"], judgement.answer_relevance >= 0.5),
                )
            )
    return made


def accuracy(pairs: Sequence[tuple[bool, bool]]) -> float:
    return sum(label == judged for label, judged in pairs) / len(pairs)


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Cohen's kappa: agreement beyond what chance would give (doi:10.1177/001316446002000104)."""
    by_chance = (
        sum(
            sum(label is value for label, _ in pairs) * sum(judged is value for _, judged in pairs)
            for value in (True, False)
        )
        / len(pairs) ** 2
    )
    return (accuracy(pairs) - by_chance) / (1 - by_chance)


@pytest.mark.parametrize(
    ("split", "faithful", "relevant"),
    [("calibration", (0.94, 0.89), (0.86, 0.70)), ("held out", (0.89, 0.78), (0.86, 0.67))],
)
def test_the_embedded_judge_agrees_with_the_labels_this_far(
    labelled: list[Labelled],
    split: str,
    faithful: tuple[float, float],
    relevant: tuple[float, float],
) -> None:
    """Accuracy and kappa of 38 and 37 answers; the thresholds were chosen on the first alone.

    docs/decisions.md tells these figures, and why they flatter the judge.
    """
    own = [item for item in labelled if item.split == split]
    for pairs, floor in (
        ([item.faithful for item in own], faithful),
        ([item.relevant for item in own], relevant),
    ):
        assert accuracy(pairs) >= floor[0]
        assert kappa(pairs) >= floor[1]


@pytest.mark.parametrize("kind", ["wrong number", "wrong date", "negation", "extra claim"])
def test_the_embedded_judge_sees_these_errors(labelled: list[Labelled], kind: str) -> None:
    judged = [item.faithful[1] for item in labelled if item.kind == kind]
    assert judged
    assert not any(judged)
