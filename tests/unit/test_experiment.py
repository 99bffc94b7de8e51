"""Grids of configurations, and a choice judged on held-out questions."""

from dataclasses import replace
from itertools import combinations
from uuid import UUID

import numpy as np
import pytest

from rag_resources.core.configuration import RetrievalConfig, with_overrides
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.experiment import (
    MAX_CONFIGURATIONS,
    Selection,
    choose,
    expand,
    parse_experiment,
    split_questions,
    weights_experiment,
)
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.retrievers import RetrieverName

BASE = RetrievalConfig()


def entries(count: int) -> list[GoldenEntry]:
    """Golden questions, a third of them causal."""
    return [
        GoldenEntry(
            query=f"¿pregunta {number}?",
            relevant_note_ids=(UUID(int=number),),
            expected_answer="sí",
            category="causal" if number % 3 == 0 else "factual",
            difficulty=1,
            golden_id=UUID(int=number),
        )
        for number in range(count)
    ]


def results(scores: dict[str, list[float]]) -> dict[str, dict[UUID, dict[str, float]]]:
    """The MRR of each question, by configuration."""
    return {
        name: {UUID(int=number): {"mrr": value} for number, value in enumerate(values)}
        for name, values in scores.items()
    }


def test_a_grid_is_all_combinations_and_the_base() -> None:
    """The combination that is the base is tried once, as the base."""
    raw = {
        "name": "pesos",
        "base": "b",
        "grid": {"fusion.method": ["rrf", "scaled"], "retrievers.semantic.weight": [0.3, 0.5]},
        "configurations": {"sin contexto": {"contextual": False}},
    }
    made = expand(parse_experiment(raw, origin="x.yaml"), BASE)
    assert list(made) == [
        "b",
        "method=rrf, weight=0.3",
        "method=rrf, weight=0.5",
        "method=scaled, weight=0.3",
        "sin contexto",
    ]
    assert made["b"] == BASE
    rrf = made["method=rrf, weight=0.3"]
    assert (rrf.fusion.method, rrf.retrievers[RetrieverName.SEMANTIC].weight) == ("rrf", 0.3)
    assert made["sin contexto"].contextual is False


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ({"name": "x", "base": "b"}, "configurations"),
        ({"name": "x", "base": "b", "grid": {"top_k.final": []}}, "top_k.final"),
        ({"name": "x", "grid": {"top_k.final": [3]}}, "base"),
        ({"name": "x", "base": "b", "grid": {"a": [1]}, "folds": 3}, "folds"),
        ({"name": "x", "base": "b", "grid": {"a": [1]}, "selection": {"metric": "f1"}}, "metric"),
        (["no es un objeto"], ""),
    ],
)
def test_a_bad_experiment_names_its_problem(raw: object, named: str) -> None:
    with pytest.raises(InvalidConfigurationError) as caught:
        parse_experiment(raw, origin="x.yaml")
    assert any(named in problem for problem in caught.value.problems)
    assert "x.yaml" in caught.value.message


def test_every_bad_combination_is_named() -> None:
    raw = {"name": "pesos", "base": "b", "grid": {"top_k.final": [3, 0, -1]}}
    with pytest.raises(InvalidConfigurationError) as caught:
        expand(parse_experiment(raw, origin="x.yaml"), BASE)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "final=0",
        "final=-1",
    ]
    assert "pesos" in caught.value.message


def test_a_grid_that_would_take_for_ever_is_refused() -> None:
    """The base counts too."""

    def tried(values: int) -> dict[str, RetrievalConfig]:
        grid = {"fusion.rank_constant": list(range(100, 100 + values))}
        return expand(parse_experiment({"name": "x", "base": "b", "grid": grid}, origin="x"), BASE)

    assert len(tried(MAX_CONFIGURATIONS - 1)) == MAX_CONFIGURATIONS == 200
    with pytest.raises(InvalidConfigurationError, match=r"201 .*200"):
        tried(MAX_CONFIGURATIONS)


def test_a_split_depends_on_texts_and_seed_alone() -> None:
    asked = entries(40)
    assert split_questions(asked, Selection()) == split_questions(asked[::-1], Selection())
    assert split_questions(asked, Selection()) != split_questions(asked, Selection(seed=2))


def test_questions_about_one_note_are_never_on_both_sides_of_a_split() -> None:
    notes = [UUID(int=number) for number in range(60)]
    asked = [
        replace(entry, relevant_note_ids=(notes[number // 3], notes[59]))
        for number, entry in enumerate(entries(120))
    ]
    parts = split_questions(asked, Selection())
    assert [len(part) for part in parts] == [24] * 5
    assert set.union(*map(set, parts)) == {entry.golden_id for entry in asked}
    for first, second in combinations(parts, 2):
        mine, others = (
            {each.relevant_note_ids[0] for each in asked if each.golden_id in part}
            for part in (first, second)
        )
        assert not mine & others
    alone = [replace(entry, relevant_note_ids=(notes[0],)) for entry in asked]
    assert len(split_questions(alone, Selection())) == 1


def test_the_weights_of_a_configuration_are_tried_on_a_small_grid() -> None:
    assert len(expand(weights_experiment("base", BASE), BASE)) == 4
    parts = {"semantic": 0.25, "windows": 0.25, "fulltext": 0.5}
    changed = {own: {"weight": weight} for own, weight in parts.items()}
    base = with_overrides(BASE, {"retrievers": changed})
    tried = expand(weights_experiment("base", base), base)
    assert len(tried) == 12
    for name, config in tried.items():
        weights = [config.retrievers[own].weight for own in config.searched]
        assert name == "base" or sum(weights) == pytest.approx(1, abs=0.002)
    without = RetrievalConfig(strategy="fulltext")
    with pytest.raises(InvalidConfigurationError):
        weights_experiment("palabras", without)


def test_what_is_judged_was_chosen_by_other_questions() -> None:
    """Each part uses the winner of the others: here always the one that is worse inside."""
    split = split_questions(entries(10), Selection(folds=2))
    first, second = split
    by_part = {
        "a": [1.0 if UUID(int=n) in first else 0.0 for n in range(10)],
        "b": [1.0 if UUID(int=n) in second else 0.0 for n in range(10)],
    }
    choice = choose(results(by_part), split, "mrr")
    assert choice.by_part == ("b", "a")
    assert {metrics["mrr"] for metrics in choice.judged.values()} == {0.0}


def test_choosing_the_luckiest_of_equals_is_not_judged_better() -> None:
    """Of thirty equal configurations the best looks better than it is; its judgement does not."""
    generator = np.random.default_rng(3)
    asked = entries(60)
    split = split_questions(asked, Selection())
    seen, judged = [], []
    for _ in range(60):
        noise = {f"c{n}": list(generator.random(60)) for n in range(30)}
        choice = choose(results(noise), split, "mrr")
        seen.append(np.mean(noise[choice.best]))
        judged.append(np.mean([metrics["mrr"] for metrics in choice.judged.values()]))
    assert np.mean(seen) > 0.56
    assert np.mean(judged) == pytest.approx(0.5, abs=0.02)
