"""A fusion learned from golden questions on a real index: looked up, trained, judged, written."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml

from rag_resources.configurations import load_configuration, write_configuration
from rag_resources.core.configuration import RetrievalConfig, with_overrides
from rag_resources.core.errors import (
    DisturbedEvaluationError,
    InvalidConfigurationError,
    InvalidGoldenDatasetError,
)
from rag_resources.core.fusion_config import Feature, LearnedModel
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.logistic import FeatureWeight
from rag_resources.core.types import Vectors
from rag_resources.database.pool import Database
from rag_resources.evaluation.fusion_training import STEPS, train_fusion, with_model
from rag_resources.store.candidate_scores import look_up_words
from rag_resources.store.golden import write_golden
from tests.command_line import Outcome, call_rag, isolate
from tests.corpus import GENEROUS_MS, Corpus, Draft
from tests.embedders import HashEmbedder

PLACES = ("taller", "piso", "tren", "huerto", "puerto", "museo", "bosque", "banco", "parque")
BASE = RetrievalConfig(strategy="fulltext", model="openai_hash", transformation={"enabled": False})
TAG = "mitad"


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    """Of each place a note says it again and again, and another one answers in one phrase."""
    made = Corpus(database)
    drafts = []
    for place in PLACES:
        drafts.append(
            Draft(f"Ana llegó a ver el {place} nuevo y después se fue a cenar con todos.")
        )
        drafts.append(Draft(f"El {place}, {place}: {place}, Ana, {place}. Llegó."))
    notes = made.fill(drafts)
    write(made, notes[::2])
    return made


def write(corpus: Corpus, notes: Sequence[UUID]) -> None:
    entries = [
        GoldenEntry(f"¿Llegó a ver el {place}?", (note,), "sí", "factual", 1, tags=(TAG,))
        for place, note in zip(PLACES, notes, strict=False)
    ]
    with corpus.database.transaction() as connection:
        write_golden(connection, entries, replace=True)


def test_words_are_looked_up_with_the_idf_of_the_index(corpus: Corpus) -> None:
    [row] = corpus.fetch("SELECT id FROM chunks WHERE content LIKE '%%ver el huerto%%'")
    with corpus.database.transaction() as connection:
        candidates: dict[Any, list[UUID]] = {"chunks": [row.id], "notes": []}
        question = "¿Cuándo llegó Luis al huerto?"
        found = look_up_words(connection, question, candidates, tenant="ana")
    assert found.keys() == {row.id}
    # "cuándo" and "al" do not count; "Luis" is in no note, so it weighs the most.
    assert 0 < found[row.id][Feature.COVERAGE] < 0.6
    assert found[row.id][Feature.SENTENCE] == found[row.id][Feature.COVERAGE]


def test_what_wins_on_questions_not_seen_is_written_and_reads_back(
    corpus: Corpus, tmp_path: Path
) -> None:
    steps: list[int] = []
    found = train_fusion(
        corpus.database, corpus.pipeline(), "palabras", BASE, tag=TAG, progress=steps.append
    )
    assert sum(steps) == STEPS * len(PLACES)
    assert found.teaching == len(PLACES)
    assert len(found.by_part) == 5
    assert found.mrr.before < 0.9
    assert found.mrr.after == 1.0
    assert found.is_better
    assert corpus.fetch("SELECT FROM evaluation_results") == []

    path = tmp_path / "aprendida.yaml"
    written = write_configuration(path, found.config, description="Aprendida.")
    read = load_configuration(path)
    assert read == written
    assert read.retrieval.config_hash == found.config.config_hash != BASE.config_hash
    assert yaml.safe_load(path.read_text("utf-8"))["retrieval"]["fusion"]["method"] == "learned"
    with pytest.raises(InvalidConfigurationError):
        write_configuration(path, BASE, description="Otra.")
    assert load_configuration(path) == read

    again = train_fusion(corpus.database, corpus.pipeline(), "palabras", BASE, tag=TAG)
    assert again == found  # the same to the last digit


def test_what_is_as_good_already_is_no_evidence(corpus: Corpus) -> None:
    notes = [row.id for row in corpus.fetch("SELECT id FROM notes ORDER BY external_id::int")]
    write(corpus, notes[1::2])
    found = train_fusion(corpus.database, corpus.pipeline(), "palabras", BASE)
    assert found.mrr.before == 1.0
    assert not found.is_better


def test_questions_about_too_few_notes_are_refused(corpus: Corpus) -> None:
    with pytest.raises(InvalidGoldenDatasetError, match="Hay 0 preguntas"):
        train_fusion(corpus.database, corpus.pipeline(), "palabras", BASE, tag="otra")
    [row] = corpus.fetch("SELECT id FROM notes LIMIT 1")
    write(corpus, [row.id] * len(PLACES))
    with pytest.raises(InvalidGoldenDatasetError, match="Hay 9 preguntas"):
        train_fusion(corpus.database, corpus.pipeline(), "palabras", BASE)


def test_a_question_that_lost_a_stage_teaches_nothing(corpus: Corpus) -> None:
    class Broken(HashEmbedder):
        def embed_queries(self, texts: Sequence[str]) -> Vectors:
            if any(texts):
                raise OSError
            return super().embed_queries(texts)

    hybrid = with_overrides(BASE, {"strategy": "hybrid"})
    with pytest.raises(DisturbedEvaluationError, match="palabras"):
        train_fusion(corpus.database, corpus.pipeline(embedder=Broken()), "palabras", hybrid)


def test_a_note_that_is_not_chunked_yet_is_compared_by_its_words(database: Database) -> None:
    """With a model of words alone it comes first, as it does once it is chunked."""
    corpus = Corpus(database)
    drafts = [Draft("La gata duerme en la cocina."), Draft("La gata come sardinas.", state="new")]
    model = LearnedModel(
        intercept=0, features={Feature.COVERAGE: FeatureWeight(weight=2, mean=0.5, scale=0.5)}
    )
    config = with_model(RetrievalConfig(model="openai_hash"), model)
    scores = []
    for state in ("new", "indexed"):
        notes = corpus.fill([drafts[0], replace(drafts[1], state=state)])
        response = corpus.pipeline().retrieve("¿Qué come la gata?", config, deadline_ms=GENEROUS_MS)
        assert response.results[0].note_id == notes[1]
        scores.append(response.results[0].score)
    assert scores[0] == pytest.approx(scores[1], abs=0.01)


def test_the_command_says_what_it_found_and_writes_only_what_wins(
    corpus: Corpus,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "configuraciones"
    folder.mkdir()
    (folder / "palabras.yaml").write_text(
        "{name: palabras, description: Palabras., retrieval: {strategy: fulltext}}", "utf-8"
    )
    isolate(
        monkeypatch,
        tmp_path,
        RAG_CONFIGURATIONS=str(folder),
        DATABASE_URL=database_url,
        TENANT="ana",
    )

    def rag(path: Path, *options: str) -> Outcome:
        called = ["fusion", "train", path, "--base", "palabras", *options]
        return call_rag(monkeypatch, capsys, *called)

    path = folder / "aprendida.yaml"
    trained = rag(path, "--tag", TAG, "--json")
    said = trained.json
    assert (trained.code, said["better"], said["written"]) == (0, True, "aprendida")
    assert said["configHash"] == load_configuration(path).retrieval.config_hash
    assert said["model"]["features"].keys() >= {"fulltext", "sentence", "length"}
    assert rag(path).code == 2  # it exists already

    notes = [row.id for row in corpus.fetch("SELECT id FROM notes ORDER BY external_id::int")]
    write(corpus, notes[1::2])
    other = folder / "otra.yaml"
    kept = rag(other)
    assert kept.code == 0
    assert "palabras de la pregunta en la mejor frase" in kept.out
    assert "█" in kept.out
    assert "MRR: 1.000 → " in kept.out
    assert "se queda la actual, «palabras»" in kept.out
    assert not other.exists()
