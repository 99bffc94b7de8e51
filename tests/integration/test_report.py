"""The evaluation report: its figures, and the page made of them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig, Role
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.golden import golden_hash
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.files import LocalFiles
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from rag_resources.serving.report import EvaluationReport, read_report, render_report, write_report
from rag_resources.store.evaluations import fetch_evaluation
from rag_resources.store.golden import list_golden, write_golden
from rag_resources.store.notes import note_id
from rag_resources.store.promotions import promote
from tests.stored_evaluations import Asked, store_evaluation

CONFIG = RetrievalConfig()
SCRIPT = "<script>alert(1)</script>"
DAY = datetime(2025, 3, 10, 8, 30, tzinfo=UTC)
RELEVANT, *OTHERS = [note_id("default", "notes", name) for name in "abcdefgh"]
# The rank of the relevant note of each question; 0 for none.
RANKS = {"buena": (1, 1, 2, 1, 3, 0), "media": (1, 2, 0, 1, 0, 0), "mala": (0, 0, 0, 0, 2, 0)}


@pytest.fixture(autouse=True)
def notes(database: Database) -> None:
    """Eight notes, and a model that may serve."""
    records = [
        NoteRecord(name, f"Título {name}", f"Texto de {name}. " * 30, DAY) for name in "abcdefgh"
    ]
    ingest(database, records, tenant="default", source="notes")
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO embedding_models"
            " (name, dimension, provider, digest, similarity_threshold, created_at, kinds)"
            " VALUES (%s, 3, 'p', 'd', 0, %s, '{chunk}')",
            (CONFIG.model, DAY),
        )


def asked(ranks: Sequence[int]) -> list[Asked]:
    """Questions whose relevant note was found at a rank."""
    return [
        Asked(
            number, [RELEVANT], [*OTHERS[: rank - 1], RELEVANT, *OTHERS[rank:]] if rank else OTHERS
        )
        for number, rank in enumerate(ranks)
    ]


def evaluate(database: Database, name: str, items: Sequence[Asked], *, day: int = 0) -> UUID:
    """Store an evaluation of the golden dataset as it is, some days after the first."""
    with database.transaction() as connection:
        golden = golden_hash(list_golden(connection))
    created_at = DAY + timedelta(days=day)
    return store_evaluation(
        database, name, items, config=CONFIG, golden=golden, created_at=created_at
    )


def serve(database: Database, evaluation_id: UUID) -> None:
    with database.transaction() as connection:
        evaluation = fetch_evaluation(connection, evaluation_id)
        assert evaluation
        promote(connection, evaluation, CONFIG, run_id=None)


def read(database: Database) -> EvaluationReport:
    named = {
        name: NamedConfiguration(
            name=name,
            description="x",
            role=Role.REFERENCE if name == "mala" else Role.CANDIDATE,
            retrieval=CONFIG,
        )
        for name in RANKS
    }
    return read_report(database, named)


@pytest.fixture
def three(database: Database) -> dict[str, UUID]:
    """Three configurations; the good one serves."""
    with database.transaction() as connection:
        entries = [item.outcome.golden for item in asked(RANKS["buena"])]
        write_golden(connection, entries, replace=True)
    stored = {
        name: evaluate(database, name, asked(ranks), day=day)
        for day, (name, ranks) in enumerate(RANKS.items(), start=1)
    }
    serve(database, stored["buena"])
    return stored


def test_it_holds_each_configuration_the_history_and_what_serving_misses(
    database: Database, three: dict[str, UUID]
) -> None:
    report = read(database)
    assert [item.evaluation.configuration for item in report.configurations] == list(RANKS)
    assert [item.serves for item in report.configurations] == [True, False, False]
    assert [item.evaluation.evaluation_id for item in report.configurations] == [*three.values()]
    assert [item.evaluation_id for item in report.history] == [*three.values()][::-1]
    assert [each.query for each in report.missed] == ["¿pregunta 5?"]
    assert report.missed_by == "buena"
    page = render_report(report)
    for shown in ("0.833", "0.436–0.970", "¿pregunta 5?", "2025-03-13 08:30 UTC"):
        assert f">{shown}<" in page
    assert _("no: {reason}").format(reason=_("it is a reference, for comparison only")) in page
    assert "¿pregunta 2?</td><td>2 → &gt; 10</td>" in page, "lost against what serves"


def test_figures_of_changed_notes_may_not_serve(database: Database, three: dict[str, UUID]) -> None:
    records = [NoteRecord("nueva", "Nueva", "Otra nota.", DAY)]
    ingest(database, records, tenant="default", source="notes")
    assert all(item.gates.staleness for item in read(database).configurations)


def test_what_others_wrote_is_text_and_the_page_needs_nothing_else(database: Database) -> None:
    ingest(
        database,
        [NoteRecord(f"{SCRIPT} malo", "", "nota", DAY)],
        tenant="default",
        source="notes",
    )
    bad = note_id("default", "notes", f"{SCRIPT} malo")
    item = Asked(0, [bad], [bad], text=f"{SCRIPT} pregunta")
    serve(database, evaluate(database, "buena", [item]))
    evaluate(database, f"{SCRIPT} nombre", [replace(item, found=OTHERS)], day=1)
    page = render_report(read(database))
    for text in ("malo", "pregunta", "nombre"):
        assert f"&lt;script&gt;alert(1)&lt;/script&gt; {text}" in page
    for needed in ("<script", "http:", "https:", "@import", "<img", "<iframe", "<link"):
        assert needed not in page


def test_a_page_is_written_whole_or_not_at_all(database: Database, tmp_path: Path) -> None:
    report = read(database)
    path = tmp_path / "a" / "informe.html"
    assert write_report(report, LocalFiles(tmp_path), "a/informe.html") == str(path)
    assert path.read_text("utf-8") == render_report(report)
    assert [item.name for item in path.parent.iterdir()] == ["informe.html"]
    with pytest.raises(InvalidParameterError):
        write_report(report, LocalFiles(path), "dentro.html")
