"""How sure a response is: its signals, the model of a claim, and the bands with their precision."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from rag_resources.core.calibration import (
    AskedQuestion,
    calibrate,
    fit_logistic,
)
from rag_resources.core.confidence import (
    SIGNALS,
    Band,
    BandName,
    Calibration,
    Claim,
    ClaimModel,
    Signal,
    confidence_of,
)
from rag_resources.core.confidence_signals import answer_signals, signals_of
from rag_resources.core.logistic import FeatureWeight, probability
from rag_resources.core.quotation import RankedSentence
from rag_resources.core.text import Span
from rag_resources.core.types import RetrievalResult, ScoredSpan
from rag_resources.retrieval.confidence import confidence_in_words

A, B = UUID(int=1), UUID(int=2)
BANDS = (
    Band(name=BandName.HIGH, from_probability=0.8, right=19, questions=20),
    Band(name=BandName.MEDIUM, from_probability=0.5, right=12, questions=20),
    Band(name=BandName.LOW, from_probability=0.0, right=3, questions=20),
)


def result(note: UUID, score: float, text: str = "") -> RetrievalResult:
    return RetrievalResult(
        note, note, text, text, score, 0, (0, len(text)), "semantic", score, title="La lavadora"
    )


def test_the_signals_are_those_of_what_a_user_gets() -> None:
    results = [result(A, 0.75, "Se rompió en marzo."), result(A, 0.5), result(B, 0.25)]
    assert signals_of("¿Cuándo se rompió la nevera?", results, final=2) == {
        Signal.DROP: 0.25,
        Signal.WORDS: 0.5,  # "rompió", not "nevera"
        Signal.LENGTH: 2.0,
    }


def test_the_signals_of_an_answer_are_those_of_its_likeliest_sentence() -> None:
    results = [result(A, 0.75), result(B, 0.5), result(B, 0.25)]

    def ranked(score: float, context: float) -> RankedSentence:
        return RankedSentence(0, Span(0, 1), "x", score, 0.9, 0.4, context)

    asked = "¿Cuándo se rompió la nevera?"
    found = answer_signals(asked, results, [ranked(0.75, 0.5), ranked(0.5, 0.1)], "es")
    assert found == {
        Signal.DROP: 0.5,
        Signal.GAP: 0.25,
        Signal.SCORE: 0.75,
        Signal.LENGTH: 2.0,
        Signal.SENTENCE: 0.75,
        Signal.LEAD: 0.25,
        Signal.SIMILARITY: 0.9,
        Signal.COVERAGE: 0.4,
        Signal.CONTEXT: 0.5,
    }
    assert set(found) == set(SIGNALS[Claim.CITATION]) == set(SIGNALS[Claim.ANSWERABLE])
    assert answer_signals(asked, results, [ranked(0.8, 0.0)], "es") is None
    alone = answer_signals(asked, results[:1], [ranked(0.5, 0.5)], "es")
    assert alone is not None
    assert (alone[Signal.LEAD], alone[Signal.GAP]) == (0.5, 0.75)


def test_the_words_are_those_of_the_sentences_that_matched_and_of_the_title() -> None:
    found = replace(result(A, 0.5, "Era la nevera. Se rompió ya."), start_char=100)
    asked = "¿se rompió la nevera o la lavadora?"
    assert signals_of(asked, [found], final=5)[Signal.WORDS] == 1
    matched = replace(found, windows=(ScoredSpan(115, 128, 0.5),))
    assert signals_of(asked, [matched], final=5)[Signal.WORDS] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("value", "name"),
    [(9.0, "high"), (0.8, "high"), (0.6, "medium"), (0.5, "medium"), (-9.0, "low")],
)
def test_a_band_begins_at_its_probability(value: float, name: str) -> None:
    """The model is the identity on probabilities given as logits."""
    logit = math.log(value / (1 - value)) if 0 < value < 1 else value
    model = ClaimModel(
        intercept=0.0,
        signals={Signal.DROP: FeatureWeight(weight=1.0, mean=0.0, scale=1.0)},
        bands=BANDS,
    )
    # Rounding of the logit must not move a case that is exactly at the edge.
    assert model.band_of({Signal.DROP: logit + 1e-9}).name == name


def test_a_response_is_told_by_its_band_and_never_by_a_bare_number() -> None:
    model = ClaimModel(
        intercept=9.0,
        signals={Signal.DROP: FeatureWeight(weight=0.0, mean=0.0, scale=1.0)},
        bands=BANDS,
    )
    calibration = Calibration(claims={Claim.RESULTS: model}, questions=60, unanswerable=5)
    found = confidence_of(calibration, {Signal.DROP: 0.3})
    (told,) = confidence_in_words(found)
    assert told == (
        "Confianza alta: de 20 preguntas así, entre los resultados había una nota que respondía "
        "en el 95 % (IC 95 %: 76–99)"
    )
    assert found.to_json() == {
        "results": {
            "band": "high",
            "precision": 0.95,
            "interval": [BANDS[0].interval.low, BANDS[0].interval.high],
            "questions": 20,
        }
    }


# Fitting and measuring


def test_the_fit_of_two_groups_is_their_shares() -> None:
    """Without a penalty the probability of a group is the share of it that came true."""
    rows = [{Signal.DROP: float(n < 8)} for n in range(20)]
    outcomes = [n in (0, 1, 2, 3, 4, 5) or n in (8, 9, 10) for n in range(20)]
    fitted = fit_logistic(rows, outcomes, penalty=1e-9)
    assert probability(*fitted, {Signal.DROP: 1.0}) == pytest.approx(6 / 8, abs=1e-4)
    assert probability(*fitted, {Signal.DROP: 0.0}) == pytest.approx(3 / 12, abs=1e-4)


def asked(likely: Sequence[float], *, seed: int) -> list[AskedQuestion]:
    """Questions whose first signal is the probability that they were found, never first."""
    drawn = random.Random(seed)
    found = []
    for number, chance in enumerate(likely):
        true = drawn.random() < chance
        found.append(
            AskedQuestion(
                UUID(int=number),
                frozenset({UUID(int=number // 2)}),
                {Signal.DROP: chance, Signal.WORDS: drawn.random()},
                {Claim.RESULTS: true, Claim.FIRST: False},
            )
        )
    return found


def test_signals_that_tell_are_calibrated_and_the_bands_keep_what_they_say() -> None:
    """On other questions of the same kind each band is as precise as its interval says."""
    chances = [0.1, 0.5, 0.95] * 100
    found = calibrate(asked(chances, seed=1))
    model = found.calibration.claims[Claim.RESULTS]
    assert found.measured[Claim.RESULTS].tells_something
    assert [band.name for band in model.bands] == ["high", "medium", "low"]
    assert sum(band.questions for band in model.bands) == 300
    fresh = asked(chances, seed=2)
    for band in model.bands:
        own = [
            item.true[Claim.RESULTS] for item in fresh if model.band_of(item.signals or {}) == band
        ]
        assert own
        assert abs(sum(own) / len(own) - band.precision) < 0.15
    assert Claim.FIRST not in found.measured


def test_signals_that_tell_nothing_are_not_calibrated() -> None:
    """Each question would be known by its own noise if it judged itself."""
    found = calibrate(asked([0.5] * 200, seed=3))
    assert found.calibration.claims == {}
    assert not found.measured[Claim.RESULTS].tells_something


@pytest.mark.parametrize("share", [0.5, 0.6])
def test_questions_that_are_all_about_one_note_calibrate_nothing(share: float) -> None:
    """There is no question about another note to learn from, and none is judged by itself."""
    found = calibrate(
        [
            AskedQuestion(
                UUID(int=number),
                frozenset({A}),
                {Signal.DROP: float(true)},
                {Claim.RESULTS: true, Claim.FIRST: False},
            )
            for number in range(100)
            for true in [number < 100 * share]
        ]
    )
    assert found.calibration.claims == {}
    assert found.measured[Claim.RESULTS].auc == 0.5


def test_a_question_is_judged_without_those_about_its_notes() -> None:
    """A signal that names the note tells nothing of other notes."""

    def named(number: int) -> Mapping[Signal, float]:
        return {Signal.DROP: float(number // 20 % 2), Signal.WORDS: float(number // 20)}

    questions = [
        AskedQuestion(
            UUID(int=number),
            frozenset({UUID(int=number // 20)}),
            named(number),
            dict.fromkeys(Claim, number // 20 in (1, 2, 5, 6)),
        )
        for number in range(160)
    ]
    assert not calibrate(questions).measured[Claim.RESULTS].tells_something


def test_unanswerable_questions_are_counted_and_empty_responses_are_no_case() -> None:
    nothing = [
        AskedQuestion(UUID(int=1_000 + n), frozenset(), None, dict.fromkeys(Claim, False))
        for n in range(9)
    ]
    answered = asked([1.0] * 40 + [0.0] * 40, seed=5)
    found = calibrate([*answered, *nothing]).calibration
    assert (found.questions, found.unanswerable) == (89, 9)
    assert sum(band.questions for band in found.claims[Claim.RESULTS].bands) == 80
