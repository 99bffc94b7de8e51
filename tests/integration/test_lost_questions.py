"""Lost questions are asked again under the former configuration: it, or the data, lost them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from rag_resources.core.attribution import Attribution
from rag_resources.core.configuration import (
    ChunkingConfig,
    RetrievalConfig,
    Strategy,
)
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import SearchSettings
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import NoteRecord, TimeWindow
from rag_resources.database.pool import Database
from rag_resources.evaluation.comparison import attribute_losses, compare_evaluations
from rag_resources.evaluation.comparison_tables import attribution_in_words
from rag_resources.evaluation.runner import evaluate
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.evaluations import fetch_evaluation
from rag_resources.store.golden import list_golden, write_golden
from rag_resources.store.models import register_model
from rag_resources.store.notes import note_id
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
                register_model(
                    connection,
                    embedder.info,
                    {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
                )
            embed_chunks(self.database, embedder, ALWAYS)
            embed_notes(self.database, embedder, ALWAYS)

    def count_words(self) -> None:
        with self.database.transaction() as connection:
            refresh_statistics(connection)

    def execute(self, statement: str, *parameters: object) -> None:
        with self.database.transaction() as connection:
            connection.execute(statement, parameters)

    @property
    def pipeline(self) -> RetrievalPipeline:
        return RetrievalPipeline(
            self.database,
            embedder=self.embedders.__getitem__,
            tenant="ana",
        )

    def evaluate(self, config: RetrievalConfig = HYBRID) -> StoredEvaluation:
        settings = SearchSettings(tenant="ana")
        made = evaluate(self.database, self.pipeline, "una", config, settings=settings)
        assert made.summary.degraded_queries == 0
        assert made.evaluation_id
        with self.database.transaction() as connection:
            stored = fetch_evaluation(connection, made.evaluation_id)
        assert stored
        return stored

    def attribute(self, before: StoredEvaluation, after: StoredEvaluation) -> Attribution:
        with self.database.snapshot() as connection:
            found = compare_evaluations(connection, before, after)
        return attribute_losses(self.database, self.pipeline, found)


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


def displacing(number: int) -> list[str]:
    return [f"¿Dónde está zk{number}? zk{number} está, está zk{number}."] * 12


def test_what_the_former_configuration_finds_the_configuration_lost(store: Store) -> None:
    """Whatever came in since; what it misses, too, the data lost."""
    before = store.evaluate(WORDS)
    store.write(displacing(7), month=2, prefix="b")
    store.count_words()
    after = store.evaluate(VECTORS.model_copy(update={"similarity_threshold": 1.0}))
    found = store.attribute(before, after)
    assert (found.lost, found.obstacle) == (NOTES, None)
    assert len(found.by_configuration) == NOTES - 1
    (by_data,) = found.by_data
    with store.database.transaction() as connection:
        asked = {entry.golden_id: entry.query for entry in list_golden(connection)}
    assert asked[by_data] == "¿Dónde está zk7?"
    assert attribution_in_words(found) == _(
        "Lost questions: {lost}. Asked again under the former configuration, the configuration "
        "lost {configuration} and the data {data}."
    ).format(lost=NOTES, configuration=NOTES - 1, data=1)


def test_a_question_whose_relevant_note_was_edited_is_not_compared(store: Store) -> None:
    before = store.evaluate()
    store.write(["Nada que ver."], month=1, prefix="b")
    with store.database.transaction() as connection:
        first, *rest = list_golden(connection)
        edited = replace(first, relevant_note_ids=(identifier("b0"),))
        write_golden(connection, [edited, *rest], replace=True)
    assert store.attribute(before, store.evaluate(WORDS)).lost == 0


def test_with_the_same_configuration_the_data_lost_it_and_their_month_is_named(
    store: Store,
) -> None:
    before = store.evaluate(WORDS)
    store.write(displacing(7), month=3, prefix="c")
    store.count_words()
    after = store.evaluate(WORDS)
    found = store.attribute(before, after)
    assert (found.lost, len(found.by_data), found.by_configuration) == (1, 1, frozenset())
    with store.database.snapshot() as connection:
        (change,) = compare_evaluations(connection, before, after).changes
    assert change.field == _("data")
    assert "2025-03" in change.after
    assert "2025-01" not in change.after


def test_what_cannot_be_asked_again_says_why(store: Store) -> None:
    before = store.evaluate(VECTORS)
    after = store.evaluate(VECTORS.model_copy(update={"similarity_threshold": 1.0}))
    invalid = replace(before, config={"strategy": "grafo"}, config_hash="x")
    assert store.attribute(invalid, after).obstacle == _(
        "a stored configuration is no longer valid"
    )
    del store.embedders[GOOD]

    def embedder(name: str) -> HashEmbedder:
        if name not in store.embedders:
            raise InvalidParameterError("No hay tal modelo.")
        return store.embedders[name]

    pipeline = RetrievalPipeline(store.database, embedder=embedder, tenant="ana")
    with store.database.snapshot() as connection:
        found = compare_evaluations(connection, before, after)
    gone = attribute_losses(store.database, pipeline, found)
    assert (gone.lost, gone.obstacle) == (NOTES, _("a model is gone"))
    assert not gone.by_configuration | gone.by_data
    assert _("a model is gone") in attribution_in_words(gone)
