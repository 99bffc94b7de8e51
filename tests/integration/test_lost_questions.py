"""Real losses from each cause: the questions come back when it is undone, and it is named."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import Result
from pgvector import HalfVector
from typer.testing import CliRunner

from rag_resources.cli.main import app
from rag_resources.core.configuration import (
    ChunkingConfig,
    RetrievalConfig,
    Strategy,
)
from rag_resources.core.counterfactuals import Attribution, Change, Suspicion
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.messages import Message
from rag_resources.core.types import NoteRecord, TimeWindow
from rag_resources.database.pool import Database
from rag_resources.evaluation.attribution import attribute_losses
from rag_resources.evaluation.comparison_tables import attribution_table
from rag_resources.evaluation.runner import evaluate
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.reporting.page import render_report
from rag_resources.reporting.reading import read_report
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.evaluations import fetch_evaluation
from rag_resources.store.golden import list_golden, write_golden
from rag_resources.store.models import register_model
from rag_resources.store.notes import note_id
from rag_resources.store.promotions import promote
from tests.embedders import HashEmbedder

ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
NOTES = 30
GOOD, BAD = "openai_hash", "constant_model"
HYBRID = RetrievalConfig(model=GOOD)
WORDS = RetrievalConfig(model=GOOD, strategy=Strategy.FULLTEXT)
VECTORS = RetrievalConfig(model=GOOD, strategy=Strategy.SEMANTIC)


@dataclass
class Store:
    """Thirty notes of January and a question about each; its note is found at first."""

    database: Database
    embedders: dict[str, HashEmbedder] = field(
        default_factory=lambda: {name: HashEmbedder(name, 256) for name in (GOOD, BAD)}
    )

    def write(self, texts: Sequence[str], *, month: int, prefix: str) -> None:
        """Ingest and index notes, without counting the words anew."""
        start = datetime(2025, month, 1, tzinfo=UTC)
        records = [
            NoteRecord(f"{prefix}{number}", "", text, start + timedelta(minutes=number))
            for number, text in enumerate(texts)
        ]
        ingest(self.database, records, tenant="ana", source="diario")
        chunk_window(self.database, ALWAYS, ChunkingConfig())
        for embedder in self.embedders.values():
            with self.database.transaction() as connection:
                register_model(connection, embedder.info, embeds_chunks=True)
            embed_chunks(self.database, embedder, ALWAYS)
            embed_notes(self.database, embedder, ALWAYS)

    def count_words(self) -> None:
        with self.database.transaction() as connection:
            refresh_statistics(connection)

    def execute(self, statement: str, *parameters: object) -> None:
        with self.database.transaction() as connection:
            connection.execute(statement, parameters)

    def blind(self, model: str) -> None:
        """Give every chunk and note the same vector of a model."""
        vector = HalfVector(self.embedders[model].embed_passages(["nada"])[0])
        for table, column in (
            ("chunk_embeddings", "embedding"),
            ("chunk_embeddings", "contextual_embedding"),
            ("note_embeddings", "embedding"),
        ):
            self.execute(f"UPDATE {table} SET {column} = %s WHERE model = %s", vector, model)

    @property
    def pipeline(self) -> RetrievalPipeline:
        return RetrievalPipeline(
            self.database,
            embedder=self.embedders.__getitem__,
            tenant="ana",
            note_model=GOOD,
        )

    def evaluate(self, config: RetrievalConfig = HYBRID) -> StoredEvaluation:
        made = evaluate(self.database, self.pipeline, "una", config)
        assert made.summary.degraded_queries == 0
        assert made.evaluation_id
        with self.database.transaction() as connection:
            stored = fetch_evaluation(connection, made.evaluation_id)
        assert stored
        return stored

    def attribute(
        self, before: StoredEvaluation, after: StoredEvaluation, *worked: str
    ) -> Attribution:
        assert before.hit_rate_at_10 == 1
        assert after.hit_rate_at_10 < 1
        self.told: list[str] = []
        return attribute_losses(
            self.database,
            self.pipeline,
            before,
            after,
            worked=worked,
            told=self.told.append,
        )


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def store(database: Database) -> Store:
    made = Store(database)
    made.write([f"Guardamos zk{n} en el almacén." for n in range(NOTES)], month=1, prefix="a")
    made.count_words()
    entries = [
        GoldenEntry(f"¿Dónde está zk{n}?", (identifier(f"a{n}"),), "sí", "factual", 1)
        for n in range(NOTES)
    ]
    with database.transaction() as connection:
        write_golden(connection, entries, replace=True)
    return made


def identifier(name: str) -> UUID:
    return note_id("ana", "diario", name)


def causes(found: Attribution) -> dict[tuple[Change, str], int]:
    return {(cause.change, cause.month): len(cause.queries) for cause in found.causes}


def suspicions(found: Attribution) -> dict[tuple[Suspicion, str], int]:
    return {(item.suspicion, item.month): len(item.queries) for item in found.suspected}


def test_a_change_of_the_configuration_is_not_put_on_a_month_with_a_new_note(store: Store) -> None:
    """Nor on the golden questions, which lost none."""
    before = store.evaluate()
    store.write(["Compramos pan."], month=2, prefix="b")
    store.count_words()
    after = store.evaluate(VECTORS.model_copy(update={"similarity_threshold": 1.0}))
    found = store.attribute(before, after)
    assert causes(found) == {(Change.CONFIGURATION, ""): found.lost}
    assert found.lost == NOTES
    assert (found.unstable, found.suspected) == (frozenset(), ())
    assert attribution_table(found).rows == (
        ("la configuración: similarity_threshold", "30", "100 %"),
        ("la configuración: strategy", "30", "100 %"),
    ), "either brings them back"
    told = Message.ATTRIBUTION_ASKING.format(count=30, change=Message.CAUSE_NOTHING)
    assert store.told[0] == told


def test_a_question_whose_relevant_note_was_edited(store: Store) -> None:
    before = store.evaluate()
    store.write(["Nada que ver."], month=1, prefix="b")
    with store.database.transaction() as connection:
        first, *rest = list_golden(connection)
        edited = replace(first, relevant_note_ids=(identifier("b0"),))
        write_golden(connection, [edited, *rest], replace=True)
    found = store.attribute(before, store.evaluate(WORDS))
    assert found.lost == 1
    assert causes(found) == {(Change.GOLDEN, ""): 1}


def test_another_model(store: Store) -> None:
    store.blind(BAD)
    before = store.evaluate(VECTORS)
    found = store.attribute(before, store.evaluate(VECTORS.model_copy(update={"model": BAD})))
    assert causes(found) == {(Change.MODEL, ""): found.lost}


def test_the_month_whose_new_notes_displaced_a_note(store: Store) -> None:
    """Another month has as many new notes, which displace nothing."""
    before = store.evaluate(WORDS)
    store.write(["¿Dónde está zk7? zk7 está, está zk7."] * 12, month=3, prefix="c")
    store.write([f"Compramos pan {n} veces." for n in range(12)], month=2, prefix="b")
    store.count_words()
    found = store.attribute(before, store.evaluate(WORDS))
    assert found.lost == 1
    assert causes(found) == {(Change.NOTES, "2025-03"): 1}
    assert [row[0] for row in attribution_table(found).rows] == [
        "las notas nuevas o cambiadas de 2025-03"
    ]


def test_word_statistics_that_were_not_counted_anew(store: Store) -> None:
    """They are counted for the asking session only."""
    store.write(
        ["Guardamos zq7 en el almacén" + ", entre otras muchas cosas" * 9], month=1, prefix="b"
    )
    store.count_words()
    entry = GoldenEntry("¿Guardamos zq7 en el almacén?", (identifier("b0"),), "sí", "factual", 1)
    with store.database.transaction() as connection:
        write_golden(connection, [entry], replace=True)
    before = store.evaluate(WORDS)
    # As if the word had been frequent when the words were last counted.
    store.execute("UPDATE lexeme_statistics SET document_count = 900000 WHERE lexeme = 'zq7'")
    found = store.attribute(before, store.evaluate(WORDS))
    assert causes(found) == {(Change.STATISTICS, ""): 1}
    with store.database.transaction() as connection:
        row = connection.execute("SELECT max(document_count) FROM lexeme_statistics").fetchone()
    assert row == (900000,)


def test_vectors_changed_in_place_cannot_be_undone_and_are_suspected(store: Store) -> None:
    """The month that was worked on is named, and so is the model if it is another one now."""
    before = store.evaluate(VECTORS)
    store.blind(GOOD)
    after = store.evaluate(VECTORS)
    found = store.attribute(before, after)
    assert (found.causes, found.unstable) == ((), frozenset())
    assert suspicions(found) == {(Suspicion.UNKNOWN, ""): found.lost}
    found = store.attribute(before, replace(after, model_digest="otra"), "2025-01", "2025-02")
    assert suspicions(found) == {
        (Suspicion.MODEL_REBUILT, ""): found.lost,
        (Suspicion.MONTH_WORKED_ON, "2025-01"): found.lost,
    }
    assert all(row[0].startswith("sospecha: ") for row in attribution_table(found).rows)


def test_a_question_that_is_found_again_is_blamed_on_nothing(store: Store) -> None:
    before = store.evaluate()
    store.execute("UPDATE notes SET expires_at = now() WHERE external_id = 'a4'")
    after = store.evaluate()
    store.execute("UPDATE notes SET expires_at = NULL WHERE external_id = 'a4'")
    found = store.attribute(before, after)
    assert (found.lost, len(found.unstable), found.causes) == (1, 1, ())


def test_a_deleted_note_is_suspected(store: Store) -> None:
    before = store.evaluate()
    store.execute("DELETE FROM notes WHERE external_id = 'a4'")
    found = store.attribute(before, store.evaluate())
    assert suspicions(found)[Suspicion.NOTE_GONE, ""] == 1
    assert found.causes == ()


def test_a_configuration_that_is_no_longer_valid_cannot_be_undone(store: Store) -> None:
    before = store.evaluate()
    after = store.evaluate(VECTORS.model_copy(update={"similarity_threshold": 1.0}))
    found = store.attribute(replace(before, config={"strategy": "grafo"}), after)
    assert found.causes == ()
    assert suspicions(found) == {(Suspicion.CONFIGURATION, ""): NOTES}
    gone = store.attribute(before, replace(after, config={"model": "gone"}, model="gone"))
    assert not store.told
    assert (Suspicion.MODEL_GONE, "") in suspicions(gone)


def test_the_report_names_the_causes_of_what_is_worse_than_what_serves(store: Store) -> None:
    before = store.evaluate(WORDS)
    with store.database.transaction() as connection:
        promote(connection, before, WORDS, run_id=None)
    store.evaluate(VECTORS.model_copy(update={"similarity_threshold": 1.0}))

    def attribute(first: StoredEvaluation, second: StoredEvaluation) -> Attribution:
        return attribute_losses(store.database, store.pipeline, first, second)

    page = render_report(read_report(store.database, {}, attribute=attribute))
    assert "preguntas perdidas: 30; se han repetido: 30" in page
    assert "la configuración" in page
    assert "Por qué se perdieron" not in render_report(read_report(store.database, {}))


def test_the_command_names_the_causes(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By words, since the command has no vectors of these models."""
    words = WORDS.model_copy(update={"model": "e5_small"})
    before = store.evaluate(words)
    store.write(["¿Dónde está zk7? zk7 está, está zk7."] * 12, month=3, prefix="c")
    after = store.evaluate(words)
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("TENANT", "ana")
    monkeypatch.setenv("COLUMNS", "120")
    names = [str(item.evaluation_id) for item in (before, after)]
    told = CliRunner().invoke(app, ["compare", *names, "--why"])
    assert told.exit_code == 0, told.output
    assert "las notas nuevas o cambiadas de 2025-03" in told.output
    as_json = json.loads(CliRunner().invoke(app, ["compare", *names, "--why", "--json"]).stdout)
    [cause] = [item for item in as_json["causes"]["causes"] if item["change"] == "notes"]
    assert (cause["month"], cause["share"], len(cause["queries"])) == ("2025-03", 1, 1)
    same = CliRunner().invoke(app, ["compare", *reversed(names), "--why"])
    assert "No se perdió ninguna pregunta." in same.output


def test_a_model_that_cannot_be_used_any_more_is_suspected(store: Store) -> None:
    before = store.evaluate(VECTORS)
    after = store.evaluate(VECTORS.model_copy(update={"similarity_threshold": 1.0}))
    del store.embedders[GOOD]

    def embedder(name: str) -> HashEmbedder:
        if name not in store.embedders:
            raise InvalidParameterError("No hay tal modelo.")
        return store.embedders[name]

    pipeline = RetrievalPipeline(store.database, embedder=embedder, tenant="ana", note_model=BAD)
    found = attribute_losses(store.database, pipeline, before, after)
    assert suspicions(found) == {(Suspicion.MODEL_GONE, ""): NOTES}


def test_evaluating_on_the_command_line_judges_by_every_gate(
    store: Store, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What serves is better, question by question; nothing is stored unless asked for."""
    words = WORDS.model_copy(update={"model": "e5_small"})
    with store.database.transaction() as connection:
        info = replace(store.embedders[GOOD].info, name="e5_small")
        register_model(connection, info, embeds_chunks=False)
    before = store.evaluate(words)
    with store.database.transaction() as connection:
        promote(connection, before, words, run_id=None)
    texts = [f"¿Dónde está zk{n}? zk{n} está, está zk{n}." for n in range(6) for _ in range(12)]
    store.write(texts, month=3, prefix="c")
    (tmp_path / "peor.yaml").write_text(
        "name: peor\ndescription: peor\nretrieval: {model: e5_small, strategy: fulltext}\n", "utf-8"
    )
    for name, value in {
        "DATABASE_URL": database_url,
        "RAG_CONFIGURATIONS": str(tmp_path),
        "TENANT": "ana",
        "COLUMNS": "300",
        "GATE__HIT_RATE_AT_10": "0.5",
    }.items():
        monkeypatch.setenv(name, value)

    def evaluated(*options: str) -> Result:
        return CliRunner().invoke(app, ["evaluate", "peor", "--fail-under-gate", *options])

    told = evaluated("--no-store")
    assert told.exit_code == 1, told.output
    assert "No puede servir: es peor que «una», que sirve: Hit_Rate@10 es peor" in told.output
    as_json = json.loads(evaluated("--no-store", "--json").stdout)
    assert as_json["gate"]["state"] == "pass"
    assert (as_json["gate"]["regression"], as_json["evaluationId"]) == ("fail", None)
    with store.database.transaction() as connection:
        row = connection.execute("SELECT count(*) FROM evaluation_results").fetchone()
    assert row == (1,)
    monkeypatch.setenv("GATE__REGRESSION_BLOCKS", "false")
    assert evaluated().exit_code == 0
    monkeypatch.setenv("GATE__LATENCY_P95_MS", "0.001")
    assert "No puede servir: no pasa el control, p95 =" in evaluated().output
