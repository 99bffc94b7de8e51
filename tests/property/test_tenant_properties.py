"""Tenants: what one does changes nothing that another can observe, and what is deleted is gone."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from rag_resources.application.documents import Documents
from rag_resources.application.tenants import Tenants
from rag_resources.core.answer_log import LoggedAnswer, Outcome
from rag_resources.core.configuration import RetrievalConfig, Strategy
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Access, Connection, Database
from rag_resources.database.queries import queries
from rag_resources.database.schema import own_tables
from rag_resources.documents.arrival import files_folder
from rag_resources.documents.uploads import check_upload
from rag_resources.indexing.purge import purge
from rag_resources.ingestion.deletion import delete_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.retrieval.cache import build_caches
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import Settings, load_settings
from rag_resources.store.answers import insert_answers
from rag_resources.store.index_state import read_index_version
from rag_resources.store.notes import note_id
from rag_resources.store.search import any_visible
from rag_resources.store.status import read_status
from tests.corpus import ALWAYS, GENEROUS_MS, SMALL, SOURCE, START, Corpus, Draft
from tests.graph_corpus import GraphCorpus

# The database is emptied by every example itself, which takes a second.
one_database = settings(
    max_examples=min(20, settings.default.max_examples),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

WORDS = ("ascensor", "mermelada", "zarapito", "lunes", "caja", "sótano")
OWN = [
    Draft("El ascensor no funciona desde el lunes.", tags=("casa",)),
    Draft("Lola hizo mermelada de naranja. La caja está en el sótano."),
]
CONFIGS = (
    RetrievalConfig(model="openai_hash"),
    RetrievalConfig(model="openai_hash", strategy=Strategy.FULLTEXT),
)


@pytest.fixture
def tenant() -> str:
    return "ana"


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 3), texts),
        st.tuples(st.just("delete"), st.integers(0, 3), st.just("")),
        st.tuples(st.sampled_from(["index", "purge"]), st.just(0), st.just("")),
        st.tuples(st.just("ask"), st.integers(0, 1), texts),
    ),
    min_size=1,
    max_size=5,
)


@dataclass(frozen=True)
class Neighbours:
    """Ana and Blas in one database and one process: what Blas does, and what Ana can observe."""

    corpus: Corpus
    pipelines: dict[str, RetrievalPipeline]

    def act(self, kind: str, number: int, text: str) -> None:
        """Do something as Blas."""
        database = self.corpus.database
        if kind == "write":
            record = NoteRecord(str(number), "De Blas", text, START, (text.split()[0],))
            ingest(database, [record], tenant="blas", source=SOURCE)
        elif kind == "delete":
            delete_notes(database, [note_id("blas", SOURCE, str(number))], reason="")
        elif kind == "index":
            self.corpus.index(SMALL)
        elif kind == "purge":
            purge(database, grace_hours=0, deleted_days=0)
        else:
            self.ask("blas", text, CONFIGS[number], None)

    def ask(
        self, tenant: str, question: str, config: RetrievalConfig, filters: RetrievalFilters | None
    ) -> dict[str, Any]:
        """Ask, and return what is answered without the times."""
        answered = self.pipelines[tenant].retrieve(
            question, config, filters=filters, deadline_ms=GENEROUS_MS
        )
        return replace(answered, latency_ms=0, stages={}, transformed=None, cached=False).to_json()

    def observe(self, questions: list[str], foreign: RetrievalFilters) -> list[Any]:
        """Everything that Ana can find out: by asking, by reading, and by SQL of her own."""
        reader = self.corpus.database.as_(Access.READER)
        asked = [
            self.ask("ana", question, config, filters)
            for question in questions
            for config in CONFIGS
            for filters in (None, foreign)
        ]
        with reader.transaction() as connection:
            status = read_status(connection)
            told = [
                status,
                list(queries().list_tags(connection, tenant="ana", row_limit=10)),
                [
                    any_visible(
                        connection, tenant="ana", filters=RetrievalFilters(note_ids=(note,))
                    )
                    for note in foreign.note_ids
                ],
                read_index_version(connection, "ana"),
                *(rows(connection, name) for name in own_tables()),
            ]
        return [*asked, *told]


def rows(connection: Connection, table: str) -> list[Any]:
    """What a reader sees of a table, by the places of its rows too; nothing if it may not read."""
    may = connection.execute("SELECT has_table_privilege(%s, 'SELECT')", [table]).fetchone()
    if may != (True,):
        return []
    query = sql.SQL("SELECT t::text FROM {} AS t ORDER BY 1").format(sql.Identifier(table))
    return connection.execute(query).fetchall()


@one_database
@given(actions, texts, st.booleans())
def test_property_50_what_one_tenant_does_changes_nothing_that_another_observes(
    database: Database, history: list[tuple[str, int, str]], question: str, kept: bool
) -> None:
    """Results, scores, errors, statistics, tags, versions, rows: with shared caches or without."""
    corpus = Corpus(database)
    corpus.fill([*OWN, Draft("zarapito", tenant="blas")])
    corpus.index(SMALL)
    caches = build_caches(None) if kept else None
    neighbours = Neighbours(
        corpus,
        {
            tenant: RetrievalPipeline(
                database.as_(Access.READER),
                embedder=lambda _: corpus.embedder,
                tenant=tenant,
                caches=caches,
            )
            for tenant in ("ana", "blas")
        },
    )
    foreign = RetrievalFilters(note_ids=tuple(note_id("blas", SOURCE, str(n)) for n in range(3)))
    before = neighbours.observe([question, "zarapito"], foreign)
    for action in history:
        neighbours.act(*action)
    for seen, seen_before in zip(
        neighbours.observe([question, "zarapito"], foreign), before, strict=True
    ):
        assert seen == seen_before


# --- Deletion


SECRETS = ("Zarapito", "Avutarda", "Quebrantahuesos")
"""No one's stem is part of another word."""

TENANTS = ("ana", "blas")


@dataclass(frozen=True)
class Holding:
    """Something that quotes a secret."""

    tenant: str
    kind: str
    secret: str

    @property
    def name(self) -> str:
        """An identifier, which is remembered when the text is gone."""
        return str(SECRETS.index(self.secret))

    @property
    def text(self) -> str:
        """A cause with a name, so that the graph has it too."""
        return f"La caja se perdió porque {self.secret} la dejó en el sótano con la llave."


holdings = st.builds(
    Holding,
    tenant=st.sampled_from(TENANTS),
    kind=st.sampled_from(["note", "document"]),
    secret=st.sampled_from(SECRETS),
)


@pytest.fixture
def databases(database_url: str) -> Iterator[dict[str, Database]]:
    """A pool of each tenant over one database."""
    with ExitStack() as stack:
        yield {
            tenant: stack.enter_context(Database(database_url, tenant=tenant)) for tenant in TENANTS
        }


class Shelf:
    """Notes and documents of two tenants, all that is derived from them, and their files."""

    def __init__(self, databases: dict[str, Database], folder: Path) -> None:
        self._databases = databases
        self._folder = folder
        self._corpus = GraphCorpus(databases["ana"])
        self._caches = build_caches(None)
        for part in self._folder.iterdir():
            rmtree(part)
        with databases["ana"].transaction() as connection:
            for table in ("answers", "tombstones", "documents", "deleted_documents", "notes"):
                connection.execute(f"DELETE FROM {table}")

    def fill(self, held: set[Holding]) -> None:
        """Store, index, read for the graph, and answer."""
        for tenant, database in self._databases.items():
            own = [each for each in held if each.tenant == tenant]
            records = [
                NoteRecord(each.name, "Una nota", each.text, START)
                for each in own
                if each.kind == "note"
            ]
            ingest(database, records, tenant=tenant, source=SOURCE)
            for each in own:
                if each.kind == "document":
                    file = each.text.encode()
                    upload = check_upload(file, f"{each.name}.txt", tenant=tenant)
                    self._documents(tenant).register(upload, file)
        self._documents("ana").extract(ALWAYS)
        self._documents("ana").apply(ALWAYS)
        self._corpus.index(SMALL)
        self._corpus.cut()
        self._corpus.read()
        for each in held:
            self._answer(each)

    def _documents(self, tenant: str) -> Documents:
        return Documents(self._databases[tenant], self._settings(tenant))

    def _settings(self, tenant: str) -> Settings:
        return load_settings(
            tenant=tenant,
            rag_home=self._folder / "home",
            files_url=(self._folder / "files").as_uri(),
        )

    def _answer(self, each: Holding) -> None:
        """Ask, which fills the caches, and log an answer that quotes what was found."""
        found = self.ask(each.tenant, each.secret)
        assert each.secret in found
        quoting = LoggedAnswer(
            answer_id=uuid4(),
            asked_at=datetime.now(UTC),
            question="¿Qué pasó?",
            language="es",
            outcome=Outcome.ANSWERED,
            configuration="x",
            embedding_model="y",
            answerer="z",
            sentences=(each.text,),
            passages=tuple({"noteId": str(row.id)} for row in self._notes(each)),
        )
        with self._databases[each.tenant].transaction() as connection:
            insert_answers(connection, [quoting])

    def ask(self, tenant: str, question: str) -> str:
        """Return everything that is answered."""
        pipeline = RetrievalPipeline(
            self._databases[tenant].as_(Access.READER),
            embedder=lambda _: self._corpus.embedder,
            tenant=tenant,
            caches=self._caches,
        )
        answered = pipeline.retrieve(question, CONFIGS[1], deadline_ms=GENEROUS_MS)
        return str([result.to_json() for result in answered.results])

    def _notes(self, each: Holding) -> list[Any]:
        condition = "document_id IS NULL" if each.kind == "note" else "document_id IS NOT NULL"
        return self._corpus.fetch(
            "SELECT id, document_id FROM notes WHERE tenant_id = %s AND content LIKE %s"
            f" AND {condition}",
            each.tenant,
            f"%{each.secret}%",
        )

    def delete(self, each: Holding) -> None:
        """Delete a note for good, or a document."""
        (note,) = self._notes(each)
        if each.kind == "note":
            delete_notes(self._databases[each.tenant], [note.id], reason="")
            purge(self._databases["ana"], grace_hours=0, deleted_days=0)
        else:
            documents = self._documents(each.tenant)
            (document,) = (d for d in documents.list()[0] if d.document_id == note.document_id)
            documents.delete(document)

    def delete_tenant(self, tenant: str) -> None:
        """Delete all that it has."""
        Tenants(self._databases["ana"], self._settings("ana")).delete(tenant)

    def quoting(self, secret: str) -> dict[str, set[str]]:
        """Return the tables and files that a secret stands in, by tenant."""
        stem = secret[:-2].lower()
        found: dict[str, set[str]] = {}
        with self._databases["ana"].transaction() as connection:
            for table in own_tables():
                query = sql.SQL(
                    "SELECT DISTINCT coalesce(to_jsonb(t) ->> 'tenant_id', '') FROM {} AS t"
                    " WHERE t::text ILIKE %s"
                ).format(sql.Identifier(table))
                rows = connection.execute(query, [f"%{stem}%"])
                for row in rows:
                    found.setdefault(row[0], set()).add(table)
        for path in (self._folder / "files").rglob("*"):
            if path.is_file() and stem in path.read_bytes().decode(errors="replace").lower():
                found.setdefault(self._owner(path), set()).add(path.name)
        return found

    def _owner(self, path: Path) -> str:
        folders = {Path(files_folder(tenant)).name: tenant for tenant in TENANTS}
        return folders[path.parent.name]


@one_database
@given(st.sets(holdings, min_size=1, max_size=6), st.data())
def test_property_51_what_is_deleted_is_quoted_nowhere(
    databases: dict[str, Database], tmp_path: Path, held: set[Holding], data: st.DataObject
) -> None:
    """In no row, file or answer of a tenant that has nothing with that text any more."""
    shelf = Shelf(databases, tmp_path)
    shelf.fill(held)
    gone = data.draw(st.sets(st.sampled_from(sorted(held, key=str))), label="deleted")
    for each in gone:
        shelf.delete(each)
    leaving = data.draw(st.sampled_from([None, "blas"]), label="leaving tenant")
    if leaving and any(each.tenant == leaving for each in held):
        shelf.delete_tenant(leaving)
        gone |= {each for each in held if each.tenant == leaving}
    for secret in SECRETS:
        holders = {each.tenant for each in held - gone if each.secret == secret}
        quoting = shelf.quoting(secret)
        assert quoting.keys() == holders, quoting
        for tenant in TENANTS:
            assert (secret in shelf.ask(tenant, secret)) == (tenant in holders)
