"""Two tenants in one database: neither sees or changes the other's questions and evaluations."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest

from rag_resources.application import open_application
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import ModelInUseError
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.settings import load_settings
from rag_resources.store.notes import note_id, upsert_notes
from tests.command_line import Outcome, call_rag, isolate
from tests.stored_evaluations import Asked, store_evaluation

TENANTS = ("ana", "bea")
DAY = datetime(2025, 1, 1, tzinfo=UTC)
MODEL = "modelo"
SAME_QUESTION = "¿Quién vino a cenar?"


Rag = Callable[..., Outcome]


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
) -> Rag:
    """Call `rag` as one of two tenants, each with a note, on one database."""
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url, GOLDEN_SOURCE="")
    with Database(database_url) as database, database.transaction() as connection:
        for tenant in TENANTS:
            note = NoteRecord("cena", f"Cena de {tenant}", f"Vino Marta, dice {tenant}.", DAY)
            upsert_notes(connection, [note], tenant=tenant, source="notes")
        connection.execute(
            "INSERT INTO embedding_models (name, dimension, provider, digest,"
            " similarity_threshold, created_at, kinds) VALUES (%s, 3, 'p', 'd', 0, %s, '{chunk}')",
            [MODEL, DAY],
        )

    def call(tenant: str, *arguments: str | Path) -> Outcome:
        monkeypatch.setenv("TENANT", tenant)
        return call_rag(monkeypatch, capsys, *arguments)

    return call


def add(rag: Rag, tenant: str, question: str = SAME_QUESTION, answer: str = "Marta") -> None:
    """Add a question about the tenant's note."""
    options = ("--note", "cena", "--answer", answer, "--category", "factual", "--difficulty", "1")
    outcome = rag(tenant, "golden", "add", question, *options)
    assert (outcome.code, outcome.err) == (0, "")


def evaluated(database_url: str, tenant: str, name: str = "hybrid", *, rank: int = 1) -> UUID:
    """Store an evaluation of a tenant's question."""
    own = note_id(tenant, "notes", "cena")
    found = [uuid4() for _ in range(rank - 1)] + [own]
    config = RetrievalConfig(model=MODEL)
    with Database(database_url, tenant=tenant) as database:
        asked = [Asked(1, [own], found, text=f"¿Qué cenó {tenant}?")]
        return store_evaluation(database, name, asked, config=config)


def promote(database_url: str, tenant: str, evaluation: UUID) -> None:
    """Promote what an evaluation measured, as its run would have."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO promotions (configuration, config, config_hash, model, evaluation_id,"
            " tenant_id) SELECT configuration, config, config_hash, model, id, %s"
            " FROM evaluation_results WHERE id = %s",
            [tenant, evaluation],
        )


def test_status_and_report_tell_of_the_tenant_alone(
    rag: Rag, database_url: str, tmp_path: Path
) -> None:
    for tenant, rank in (("ana", 1), ("bea", 4)):
        add(rag, tenant)
        promote(database_url, tenant, evaluated(database_url, tenant, f"la_de_{tenant}", rank=rank))
    add(rag, "bea", "¿Dónde fue la cena?")

    counted = json.loads(rag("ana", "status", "--json").out)["database"]
    assert counted["goldenQuestions"] == 1
    assert "la_de_ana" in json.dumps(counted)
    assert "la_de_bea" not in json.dumps(counted)

    page = tmp_path / "informe.html"
    assert rag("ana", "report", "--output", page).code == 0
    text = page.read_text("utf-8")
    assert "la_de_ana" in text
    for foreign in ("la_de_bea", "cenó bea", "dice bea", "Cena de bea"):
        assert foreign not in text


def test_each_is_served_what_was_promoted_for_it(
    rag: Rag, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another's evaluation promotes nothing, and a model that serves anybody is not retired."""
    promote(database_url, "bea", evaluated(database_url, "bea", "la_de_bea"))
    monkeypatch.setenv("TENANT", "ana")
    with open_application(load_settings()) as application:
        assert application.serving.promotion() is None
        assert application.evaluations.latest("la_de_bea") is None
        with pytest.raises(ModelInUseError, match="otro cliente"):
            application.indexing.retire(MODEL)
    monkeypatch.setenv("TENANT", "bea")
    with open_application(load_settings()) as application:
        promotion = application.serving.promotion()
        assert promotion
        assert promotion.configuration == "la_de_bea"
