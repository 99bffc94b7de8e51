"""A learned fusion with values computed by hand: features, prediction, folds, training."""

import math
from uuid import UUID

import numpy as np
import pytest

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.fusion import fuse
from rag_resources.core.fusion_config import (
    DEFAULT_RETRIEVERS,
    Feature,
    FusionConfig,
    LearnedModel,
)
from rag_resources.core.fusion_training import (
    KnownCandidate,
    KnownQuestion,
    fit,
    grouped_folds,
    reciprocal_rank,
    train,
)
from rag_resources.core.learned_fusion import (
    FEATURE_OF,
    QuestionWords,
    candidate_features,
    predict,
    word_features,
    words_of,
)
from rag_resources.core.logistic import FeatureWeight
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import Candidate, Ranking
from tests.strategies import uuid_number

A, B, C = (uuid_number(number) for number in (1, 2, 3))
QUESTION = "¿Dónde duerme la gata negra?"
WORDS = QuestionWords.of(QUESTION, {"duerme": 1.0, "gata": 2.0, "negra": 5.0})


def ranking(name: RankedList, *keys: UUID, question: int = 0) -> Ranking:
    return Ranking(name, tuple(Candidate(key, key, 0.5) for key in keys), question=question)


def weight(value: float, mean: float = 0.0, scale: float = 1.0) -> FeatureWeight:
    return FeatureWeight(weight=value, mean=mean, scale=scale)


# --- Words ------------------------------------------------------------------------------------


def test_the_words_of_a_question_are_its_stems_without_interrogatives() -> None:
    assert words_of(QUESTION) == ["duerme", "la", "gata", "negra"]
    assert WORDS.stems == ("duerm", "la", "gat", "negr")
    assert WORDS.idf == {"duerm": 1.0, "gat": 2.0, "negr": 5.0}


def test_words_are_compared_in_the_passage_and_in_its_sentences() -> None:
    found = word_features(WORDS, "Las gatas comen. El perro negro de Blas duerme aquí.")
    assert found == {
        Feature.COVERAGE: 1.0,
        Feature.SENTENCE: pytest.approx(6 / 8),  # "negro" and "duerme", in the second
        Feature.PHRASE: pytest.approx(5 / 8),  # "negro"; "la" has no idf, and "las" its stem
        Feature.CLOSENESS: pytest.approx(3 / 8),  # from the word 2 ("gatas") to 9 ("duerme")
        Feature.LENGTH: pytest.approx(math.log(11)),
    }


def test_a_run_of_words_counts_with_the_stop_words_inside_it() -> None:
    words = QuestionWords.of("gata de la casa", {"gata": 3.0, "casa": 1.0})
    assert word_features(words, "Una gata de la casa grande.")[Feature.PHRASE] == 1.0
    assert word_features(words, "La gata y la casa.")[Feature.PHRASE] == 0.75
    assert word_features(words, "La casa de la gata.")[Feature.PHRASE] == 0.75


def test_the_shortest_span_is_taken_where_words_repeat() -> None:
    words = QuestionWords.of("gata casa", {"gata": 1.0, "casa": 1.0})
    found = word_features(words, "Gata uno dos tres casa gata cuatro casa")
    assert found[Feature.CLOSENESS] == 1.0  # "casa gata"
    alone = word_features(words, "Gata uno dos gata")
    assert alone[Feature.CLOSENESS] == 0.5  # the coverage; a word alone is its own span


@pytest.mark.parametrize("text", ["", "Nada de eso."])
def test_a_passage_without_the_words_has_no_share_of_them(text: str) -> None:
    found = word_features(WORDS, text)
    assert found.pop(Feature.LENGTH) == pytest.approx(math.log1p(len(text.split())))
    assert set(found.values()) == {0.0}


def test_a_question_of_stop_words_alone_compares_nothing() -> None:
    assert word_features(QuestionWords.of("la de", {}), "la de")[Feature.COVERAGE] == 0


# --- Candidates -------------------------------------------------------------------------------


def test_the_scores_of_every_list_are_a_feature() -> None:
    """Except of the graph, which a configuration with a trained model cannot have."""
    assert FEATURE_OF.keys() == set(RankedList) - {RankedList.GRAPH_CAUSES, RankedList.GRAPH_NAMES}


def test_a_score_that_was_not_found_is_zero_or_that_in_its_place() -> None:
    lists = [
        ranking(RankedList.SEMANTIC, A),
        ranking(RankedList.CONTEXTUAL, A),
        ranking(RankedList.NOTES_SEMANTIC, B),
        ranking(RankedList.FULLTEXT, A),
    ]
    found = candidate_features(lists, [{A: 0.7}, {A: 0.6}, {B: 0.9}, {}], {A: {Feature.LENGTH: 2}})
    assert found == {
        A: {
            Feature.SEMANTIC: 0.7,
            Feature.CONTEXTUAL: 0.6,
            Feature.FULLTEXT: 0.0,
            Feature.LENGTH: 2,
        },
        B: {Feature.SEMANTIC: 0.9, Feature.CONTEXTUAL: 0.9, Feature.FULLTEXT: 0.0},
    }


def test_a_list_of_a_sub_question_counts_for_what_it_holds_where_it_scores_higher() -> None:
    lists = [
        ranking(RankedList.SEMANTIC, A),
        ranking(RankedList.SEMANTIC, B, C, question=1),
    ]
    scores = [{A: 0.5, B: 0.2, C: 0.4}, {A: 0.9, B: 0.8, C: 0.3}]
    found = candidate_features(lists, scores, {})
    assert [found[key][Feature.SEMANTIC] for key in (A, B, C)] == [0.5, 0.8, 0.4]


def test_the_prediction_is_a_logistic_function_of_standardised_features() -> None:
    model = LearnedModel(
        intercept=1.0,
        features={Feature.SEMANTIC: weight(2.0, 0.5, 0.25), Feature.LENGTH: weight(-1.0, 3.0)},
    )
    found = predict(model, {Feature.SEMANTIC: 0.75, Feature.LENGTH: 4.0})
    assert found == pytest.approx(1 / (1 + math.exp(-2)))  # 1 + 2 * 1 - 1 * 1
    assert predict(model, {Feature.LENGTH: 4.0}) == pytest.approx(0.5)  # the mean, if missing
    assert predict(model, {Feature.LENGTH: 1e6}) == 0.0
    assert predict(model, {Feature.LENGTH: -1e6}) == 1.0


def test_fusion_orders_by_the_prediction() -> None:
    model = LearnedModel(intercept=0.0, features={Feature.COVERAGE: weight(1.0)})
    fused = fuse(
        [ranking(RankedList.SEMANTIC, A, B), ranking(RankedList.FULLTEXT, C)],
        FusionConfig(method="learned", learned=model),
        DEFAULT_RETRIEVERS,
        words={A: {Feature.COVERAGE: 0.0}, B: {Feature.COVERAGE: 1.0}},
    )
    assert [chunk.chunk_id for chunk in fused] == [B, A, C]
    assert [chunk.score for chunk in fused] == pytest.approx([1 / (1 + math.exp(-1)), 0.5, 0.5])


# --- Folds and training -----------------------------------------------------------------------


def test_questions_that_share_a_note_are_in_one_part_also_through_others() -> None:
    notes = [{1}, {2}, {1, 3}, {3, 4}, {5}, {6}, {7}]
    relevant = {
        uuid_number(100 + at): frozenset(map(uuid_number, own)) for at, own in enumerate(notes)
    }
    parts = grouped_folds(relevant, 3)
    assert sorted(map(len, parts)) == [2, 2, 3]
    together = {uuid_number(number) for number in (100, 102, 103)}
    assert together in parts
    assert grouped_folds(dict(reversed(relevant.items())), 3) == parts
    assert grouped_folds({A: frozenset({B}), C: frozenset({B})}, 3) == (frozenset({A, C}),)


def question(number: int, *candidates: tuple[bool, float]) -> KnownQuestion:
    """A question whose candidates answer it or not, with their coverage; each is another note."""
    own = uuid_number(1_000 * number)
    return KnownQuestion(
        own,
        frozenset({own}),
        tuple(
            KnownCandidate(
                uuid_number(1_000 * number + at),
                own if answers else uuid_number(1_000 * number + at),
                {Feature.COVERAGE: coverage, Feature.LENGTH: 3.0},
            )
            for at, (answers, coverage) in enumerate(candidates, start=1)
        ),
    )


EASY = [question(number, (False, 0.1), (True, 0.9), (False, 0.2)) for number in range(1, 7)]


def test_training_learns_what_tells_answers_apart() -> None:
    trained = train(EASY)
    coverage = trained.model.features[Feature.COVERAGE]
    assert coverage.weight > 0
    assert (coverage.mean, coverage.scale) == (0.4, round(float(np.std([0.1, 0.9, 0.2])), 6))
    assert trained.model.features[Feature.LENGTH] == weight(0.0, 3.0)  # it never differs
    assert trained.penalty == 1.0  # the strongest of those that rank all right
    assert [reciprocal_rank(trained.model, item) for item in EASY] == [1.0] * 6


def test_the_weight_is_where_the_penalised_loss_has_no_slope() -> None:
    """With one candidate of either kind at ±1 the loss is log(1 + exp(-2w)) + penalty / 2 * w²."""
    model = fit([question(1, (True, 1.0), (False, 0.0))], penalty=0.25)
    found = model.features[Feature.COVERAGE].weight
    assert found * 0.25 == pytest.approx(2 / (1 + math.exp(2 * found)), abs=1e-5)
    assert model.intercept == pytest.approx(0.0, abs=1e-5)


def test_only_candidates_of_one_question_are_told_apart() -> None:
    """That one question has higher values than the other says nothing."""
    one = question(1, (True, 0.2), (False, 0.1))
    other = question(2, (True, 0.9), (False, 1.0))
    model = fit([one, other], penalty=0.01)
    assert model.features[Feature.COVERAGE].weight == pytest.approx(0.0, abs=1e-5)


def test_the_middle_of_the_scores_lies_between_answers_and_the_rest() -> None:
    model = fit([question(1, (True, 1.0), *[(False, 0.0)] * 3)], penalty=0.1)
    scores = [predict(model, {Feature.COVERAGE: value}) for value in (0.0, 0.5, 1.0)]
    assert scores[1] == pytest.approx(0.5, abs=1e-5)
    assert scores[0] < 0.5 < scores[2]


def test_a_question_that_nothing_answers_teaches_nothing() -> None:
    nothing = question(9, (False, 0.9), (False, 0.1))
    assert not nothing.teaches
    assert fit([*EASY, nothing], penalty=0.1) == fit(EASY, penalty=0.1)
    assert reciprocal_rank(train(EASY).model, nothing) == 0.0
    for questions in ([nothing], [], EASY[:1]):
        with pytest.raises(InvalidParameterError):
            train(questions)


def test_a_note_counts_once_in_the_rank() -> None:
    model = LearnedModel(intercept=0.0, features={Feature.COVERAGE: weight(1.0)})
    wrong, right = uuid_number(7), uuid_number(8)
    found = KnownQuestion(
        A,
        frozenset({right}),
        tuple(
            KnownCandidate(uuid_number(20 + at), note, {Feature.COVERAGE: coverage})
            for at, (note, coverage) in enumerate([(wrong, 0.9), (wrong, 0.8), (right, 0.7)])
        ),
    )
    assert reciprocal_rank(model, found) == 0.5
