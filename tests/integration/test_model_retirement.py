"""Retiring a model: refusals, what is dropped, who waits, and how a model comes back."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    Role,
    Strategy,
)
from rag_resources.core.errors import (
    DatabaseUnavailableError,
    ModelInUseError,
    ModelMissingError,
)
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import RetrievalResponse
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import evaluate
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.indexing.retirement import contents_of, retire
from rag_resources.languages.messages import _
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.serving.promotion import promote_best
from rag_resources.settings import Settings, load_settings
from rag_resources.store.golden import write_golden
from rag_resources.store.models import fetch_model, register_model
from rag_resources.store.status import read_status
from rag_resources.store.vector_indexes import ensure_vector_indexes
from tests.corpus import ALWAYS, GENEROUS_MS, SMALL, Corpus, Draft
from tests.embedders import HashEmbedder
from tests.waiting import wait_until

OLD, NEW = HashEmbedder("openai_old", 24), HashEmbedder("openai_new", 40)
EMBEDDERS = {embedder.info.name: embedder for embedder in (OLD, NEW)}
PATIENCE_S = 60
TEXTS = (
    "El ascensor de la escalera no funciona. La junta votó arreglarlo en mayo, con prisa.",
    "Vera tiene fiebre. El pediatra dice que es un virus y que beba mucha agua.",
    "La gotera del baño sigue ahí. Hay que llamar otra vez al fontanero, que no contesta.",
)
QUESTION = "¿Quién llama al fontanero por la gotera?"
TABLES = ("vectors", "pending_vectors", "indexing_failures")


def config(model: str, **changes: Any) -> RetrievalConfig:
    return RetrievalConfig(model=model, strategy=Strategy.HYBRID, **changes)


def named(name: str, model: str) -> NamedConfiguration:
    """A candidate with a model."""
    return NamedConfiguration(
        name=name, description="x", role=Role.CANDIDATE, retrieval=config(model)
    )


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    """Three notes, chunked, with vectors of two models."""
    made = Corpus(database)
    made.fill([Draft(text) for text in TEXTS])
    for embedder in EMBEDDERS.values():
        with database.transaction() as connection:
            register_model(
                connection,
                embedder.info,
                {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
            )
        embed_chunks(database, embedder, ALWAYS)
        embed_notes(database, embedder, ALWAYS)
        ensure_vector_indexes(database, embedder.info, min_rows=1)
    return made


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    """Settings that name the new model alone."""
    monkeypatch.chdir(tmp_path)
    return load_settings(embedding_models=("openai_new",), note_embedding_model="openai_new")


def pipeline(corpus: Corpus) -> RetrievalPipeline:
    return RetrievalPipeline(
        corpus.database,
        embedder=EMBEDDERS.__getitem__,
        tenant="ana",
    )


def ask(corpus: Corpus, model: str, **changes: Any) -> RetrievalResponse:
    return pipeline(corpus).retrieve(QUESTION, config(model, **changes), deadline_ms=GENEROUS_MS)


def assert_whole(answer: RetrievalResponse) -> None:
    """Nothing of an answer is missing."""
    assert (answer.degraded, answer.messages, answer.error) == ((), (), None)
    assert answer.results


def contents(corpus: Corpus, model: str) -> list[Any]:
    """What the tables hold of a model."""
    return [
        corpus.fetch(f"SELECT * FROM {table} WHERE model = %s ORDER BY 1, 2", model)
        for table in TABLES
    ]


def partitions(corpus: Corpus) -> set[str]:
    """The names of the models with partitions, from the catalogue."""
    rows = corpus.fetch(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'vectors'::regclass"
    )
    return {row[0].removeprefix("vectors_") for row in rows}


def states(corpus: Corpus) -> dict[str, str | None]:
    with corpus.database.transaction() as connection:
        return {model.name: model.state for model in read_status(connection).models}


def serve(corpus: Corpus, model: str) -> None:
    """Evaluate a configuration of a model and promote it."""
    candidate = named(f"with_{model}", model)
    note = corpus.fetch("SELECT id FROM notes WHERE content LIKE '%%gotera%%'")[0][0]
    entry = GoldenEntry(QUESTION, (note,), "Nadie.", "factual", 1)
    with corpus.database.transaction() as connection:
        write_golden(connection, [entry], replace=True)
    evaluate(corpus.database, pipeline(corpus), candidate.name, candidate.retrieval)
    promote_best(corpus.database, {candidate.name: candidate})


# --- What goes, and what does not ---------------------------------------------------------------


def test_everything_of_the_model_goes_and_nothing_else(corpus: Corpus, settings: Settings) -> None:
    """Vectors, indexes, queue and failures; the other models find what they found."""
    corpus.fetch(
        "INSERT INTO pending_vectors (model, note_id) "
        "SELECT 'openai_old', id FROM notes RETURNING 1"
    )
    corpus.fetch(
        "INSERT INTO indexing_failures (stage, note_id, model, error) "
        "SELECT 'embed_note', id, m, '{}'::jsonb "
        "FROM notes, unnest('{openai_old,openai_new}'::text[]) AS m "
        "RETURNING 1"
    )
    others = [contents(corpus, name) for name in ("openai_new", "openai_hash")]
    before = ask(corpus, "openai_new")

    gone = retire(corpus.database, settings, "openai_old")

    assert sum(gone.vectors.values()) == len(others[0][0])
    assert gone.count(VectorKind.NOTE) == len(TEXTS)
    assert (gone.pending, gone.failures, gone.retired) == (3, 3, False)
    assert gone.size > 0
    assert contents(corpus, "openai_old") == [[], [], []]
    assert partitions(corpus) == {"openai_new", "openai_hash"}
    assert (
        corpus.fetch("SELECT indexname FROM pg_indexes WHERE indexname LIKE '%%openai_old%%'") == []
    )
    assert states(corpus)["openai_old"] == "retired"
    assert [contents(corpus, name) for name in ("openai_new", "openai_hash")] == others
    after = ask(corpus, "openai_new")
    assert_whole(after)
    assert after.results == before.results


def test_twice_is_as_once(corpus: Corpus, settings: Settings) -> None:
    retire(corpus.database, settings, "openai_old")
    assert retire(corpus.database, settings, "openai_old") == contents_of(
        corpus.database, "openai_old"
    )
    again = contents_of(corpus.database, "openai_old")
    assert (again.vectors, again.size, again.retired) == ({}, 0, True)


# --- Refused, while anything points at it -------------------------------------------------------


def assert_refused(corpus: Corpus, settings: Settings, model: str, *reasons: str) -> None:
    """It is, for these reasons and no other, and nothing changes."""
    before = [contents(corpus, model), partitions(corpus), states(corpus)]
    with pytest.raises(ModelInUseError) as refused:
        retire(corpus.database, settings, model)
    assert refused.value.problems == list(reasons)
    assert [contents(corpus, model), partitions(corpus), states(corpus)] == before


def test_every_reason_is_named(corpus: Corpus, settings: Settings) -> None:
    """What serves, and both settings."""
    serve(corpus, "openai_new")
    assert states(corpus)["openai_new"] == "serving"
    assert_refused(
        corpus,
        settings,
        "openai_new",
        _(
            "it is that of the configuration that serves, “{configuration}”: promote one of "
            "another model first"
        ).format(configuration="with_openai_new"),
        _(
            "it is in EMBEDDING_MODELS, so the next backfill would make it again: remove "
            "“{model}” from EMBEDDING_MODELS and restart"
        ).format(model="openai_new"),
        _(
            "it is that of the whole notes: set another one in NOTE_EMBEDDING_MODEL, restart and "
            "materialise note_embeddings"
        ),
    )


class PausingEmbedder(HashEmbedder):
    """Pauses before its first batch until released."""

    def __init__(self, like: HashEmbedder) -> None:
        super().__init__(like.info.name, like.info.dimension)
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def embed_passages(self, texts: Any) -> Any:
        """Embed, later."""
        self.reached.set()
        assert self.go_on.wait(PATIENCE_S)
        return super().embed_passages(texts)


@pytest.mark.parametrize("embed", [embed_chunks, embed_notes])
def test_a_run_that_embeds_with_it_is_not_robbed(
    corpus: Corpus, settings: Settings, embed: Callable[..., Any]
) -> None:
    """It loses neither vectors nor partition; after the run ends the model can be retired."""
    corpus.fetch("UPDATE notes SET content = content || ' Y nada más.' RETURNING 1")
    corpus.index(SMALL)
    slow = PausingEmbedder(OLD)
    with ThreadPoolExecutor() as pool:
        run = pool.submit(embed, corpus.database, slow, ALWAYS)
        assert slow.reached.wait(PATIENCE_S)
        assert_refused(
            corpus,
            settings,
            "openai_old",
            _("a run is making its vectors or indexes: wait until it ends, or cancel it"),
        )
        slow.go_on.set()
        assert run.result(timeout=PATIENCE_S).notes == len(TEXTS)
    retire(corpus.database, settings, "openai_old")


def test_a_run_between_two_batches_learns_that_its_model_is_gone(
    corpus: Corpus, settings: Settings
) -> None:
    retire(corpus.database, settings, "openai_old")
    for step in (
        lambda: embed_chunks(corpus.database, OLD, ALWAYS),
        lambda: embed_notes(corpus.database, OLD, ALWAYS),
        lambda: ensure_vector_indexes(corpus.database, OLD.info, min_rows=1),
    ):
        with pytest.raises(ModelMissingError, match="se retiró"):
            step()


# --- Whoever still asks for it ------------------------------------------------------------------


# --- Back again ---------------------------------------------------------------------------------


def test_a_retired_model_comes_back_as_if_it_were_new(corpus: Corpus, settings: Settings) -> None:
    """All chunked notes wait for it; it may have other weights by then."""
    vectors = contents(corpus, "openai_old")[0]
    retire(corpus.database, settings, "openai_old")
    other = HashEmbedder("openai_old", 28)
    with corpus.database.transaction() as connection:
        register_model(
            connection, other.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
        )
        assert fetch_model(connection, "openai_old") == other.info.__class__(
            "openai_old", 28, "test", "1", 0.0, 0
        )
    assert states(corpus)["openai_old"] == "building"
    assert len(contents(corpus, "openai_old")[1]) == len(TEXTS)

    embed_chunks(corpus.database, other, ALWAYS)
    embed_notes(corpus.database, other, ALWAYS)
    assert len(contents(corpus, "openai_old")[0]) == len(vectors)
    assert contents(corpus, "openai_old")[1:] == [[], []]


# --- Whoever is at work meanwhile ---------------------------------------------------------------


@pytest.fixture
def reader(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Somebody who reads the vectors of all models, in a transaction that stays open."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SELECT count(*) FROM vectors")
        yield connection
        connection.rollback()


def retiring_backends(corpus: Corpus) -> list[Any]:
    """The sessions that wait for the table of the vectors."""
    return corpus.fetch(
        "SELECT l.pid FROM pg_locks AS l WHERE l.relation = 'vectors'::regclass "
        "AND l.mode = 'AccessExclusiveLock' AND NOT l.granted"
    )


def test_a_run_killed_while_retiring_leaves_the_model_as_it_was(
    corpus: Corpus, settings: Settings, reader: psycopg.Connection[Any]
) -> None:
    """All or nothing; the next run does it."""
    before = contents(corpus, "openai_old")
    with ThreadPoolExecutor() as pool:
        retirement = pool.submit(retire, corpus.database, settings, "openai_old")
        wait_until(
            lambda: any(
                corpus.fetch("SELECT pg_terminate_backend(%s)", pid)
                for (pid,) in retiring_backends(corpus)
            )
        )
        with pytest.raises(DatabaseUnavailableError):
            retirement.result(timeout=PATIENCE_S)
    assert contents(corpus, "openai_old") == before
    assert states(corpus)["openai_old"] == "building"
    reader.rollback()
    retire(corpus.database, settings, "openai_old")
    assert states(corpus)["openai_old"] == "retired"
