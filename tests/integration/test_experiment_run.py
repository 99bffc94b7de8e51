"""An experiment on a real index: what it tries, embeds, chooses, judges and does not change."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rag_resources.cli.experiment import offer
from rag_resources.configurations import load_configuration
from rag_resources.core.configuration import RetrievalConfig, with_overrides
from rag_resources.core.experiment import Experiment, expand, parse_experiment
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.types import Vectors
from rag_resources.database.pool import Database
from rag_resources.evaluation.asking import count_steps
from rag_resources.evaluation.experiment import (
    ExperimentResult,
    load_experiment,
    run_experiment,
)
from rag_resources.providers.cache import EMBEDDINGS, MemoryCache
from rag_resources.providers.cached_embedder import CachedEmbedder
from rag_resources.store.golden import list_golden, write_golden
from tests.corpus import Corpus, Draft
from tests.embedders import HashEmbedder

WORDS = (
    "insulina",
    "taller",
    "gata",
    "bomba",
    "escritura",
    "viaje",
    "médico",
    "piso",
    "boda",
    "tren",
)
BASE = RetrievalConfig(strategy="fulltext", model="openai_hash")
FILE = """
name: estrategias
base: palabras
grid:
  strategy: [fulltext, semantic, hybrid]
  similarity_threshold: [1.0]
"""


class CountingEmbedder(HashEmbedder):
    """Counts the questions it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed and count."""
        self.asked.update(texts)
        return super().embed_queries(texts)


@pytest.fixture
def corpus(database: Database) -> Corpus:
    """A note and a question for each of ten words."""
    made = Corpus(database)
    notes = made.fill([Draft(f"Hoy apunté algo de {word} y nada más.") for word in WORDS])
    entries = [
        GoldenEntry(f"¿Qué apunté de {word}?", (note,), "algo", "factual", 1)
        for word, note in zip(WORDS, notes, strict=True)
    ]
    with database.transaction() as connection:
        write_golden(connection, entries, replace=True)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of the experiment."""
    file = tmp_path / "experimento.yaml"
    file.write_text(FILE, "utf-8")
    return file


def test_every_question_is_embedded_once_and_nothing_is_stored(corpus: Corpus, path: Path) -> None:
    experiment = load_experiment(path)
    configurations = expand(experiment, BASE)
    assert list(configurations) == [
        "palabras",
        "strategy=fulltext",
        "strategy=semantic",
        "strategy=hybrid",
    ]
    model, steps = CountingEmbedder(), []
    embedder = CachedEmbedder(model, MemoryCache(EMBEDDINGS))
    result = run_experiment(
        corpus.database,
        corpus.pipeline(embedder=embedder),
        experiment,
        configurations,
        progress=steps.append,
    )
    assert set(model.asked.values()) == {1}
    assert len(model.asked.keys() - {""}) == len(WORDS)  # the warm-up asks nothing
    assert sum(steps) == count_steps(len(WORDS)) * len(configurations)
    assert corpus.fetch("SELECT FROM evaluation_results") == []

    found = {name: summary.metrics["hit_rate_at_10"] for name, summary in result.summaries.items()}
    assert found["palabras"] == 1
    assert found["strategy=semantic"] == 0  # no cosine reaches the threshold
    assert result.choice.best == "palabras"
    assert len(result.choice.by_part) == 5
    assert len(result.choice.judged) == len(WORDS)
    assert {item.difference for item in result.against_base.metrics} == {0}


def test_the_best_is_offered_only_with_evidence_and_judged_by_those_that_did_not_choose(
    corpus: Corpus, tmp_path: Path
) -> None:
    with corpus.database.transaction() as connection:
        asked = list_golden(connection)
        tagged = [replace(each, tags=("mitad",)) for each in asked[:8]] + asked[8:]
        write_golden(connection, tagged, replace=True, reason="tags")
    nothing = with_overrides(BASE, {"strategy": "semantic", "similarity_threshold": 1.0})

    def run(base: RetrievalConfig, tried: dict[str, object]) -> tuple[Experiment, ExperimentResult]:
        raw = {"name": "x", "base": "vieja", "configurations": {"otra": tried}}
        experiment = parse_experiment(raw, origin="x")
        found = run_experiment(
            corpus.database, corpus.pipeline(), experiment, expand(experiment, base), tag="mitad"
        )
        return experiment, found

    experiment, better = run(nothing, {"strategy": "fulltext"})
    assert better.choice.judged.keys() == {each.golden_id for each in asked[:8]}
    assert better.on_the_rest is not None
    assert better.on_the_rest.queries == 2
    assert better.is_better
    path = offer(experiment, better, tmp_path)
    assert path is not None
    named = load_configuration(path)
    assert (named.name, named.retrieval.strategy) == ("vieja_tuned", "fulltext")
    same = run(BASE, {"context": {"sentences_before": 1}})
    assert not same[1].is_better
    assert offer(*same, tmp_path / "none") is None
    assert not (tmp_path / "none").exists()
