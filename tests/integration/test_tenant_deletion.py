"""`rag tenant`: nothing of a tenant that leaves remains, and nothing of another is touched."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import ModelInfo
from rag_resources.database.pool import Database
from rag_resources.database.schema import own_tables
from rag_resources.documents.arrival import file_name
from rag_resources.documents.uploads import check_upload, register
from rag_resources.files import LocalFiles
from rag_resources.languages.messages import _
from rag_resources.store.index_state import read_index_version
from rag_resources.store.models import register_model
from tests.command_line import Outcome, call_rag, isolate
from tests.corpus import Corpus, Draft
from tests.integration.test_tenants import MODEL, evaluated, promote

SECRET = "zarapito"
CORPUS = [
    Draft(f"El código de la caja fuerte es {SECRET}.", tenant="blas"),
    Draft(f"Otra nota sobre el {SECRET}.", tenant="blas"),
    Draft("El ascensor no funciona desde el lunes.", tenant="ana"),
]

Rag = Callable[..., Outcome]


@pytest.fixture
def tenant() -> str:
    return "blas"


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
) -> Rag:
    """Call `rag` as a tenant, on a database of several."""
    files = (tmp_path / "archivos").as_uri()
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url, FILES_URL=files, GOLDEN_SOURCE="")

    def call(tenant: str, *arguments: str | Path) -> Outcome:
        monkeypatch.setenv("TENANT", tenant)
        return call_rag(monkeypatch, capsys, *arguments)

    return call


@pytest.fixture
def corpus(database: Database) -> Corpus:
    made = Corpus(database)
    made.fill(CORPUS)
    made.cut()
    with database.transaction() as connection:
        info = ModelInfo(MODEL, 3, "test", "1", 0.0, 512)
        register_model(connection, info, {VectorKind.NOTE})
    return made


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    return LocalFiles(tmp_path / "archivos")


def run(rag: Rag, tenant: str, *arguments: str) -> Outcome:
    done = rag(tenant, *arguments)
    assert (done.code, done.err) == (0, "")
    return done


def furnish(rag: Rag, url: str, tenant: str, note: str) -> None:
    """Give a tenant a question with a history, an evaluation that was promoted, and a key."""
    question = f"¿Qué dice {note}?"
    fields = ("--answer", f"Lo de {note}", "--category", "factual", "--difficulty", "1")
    notes = run(rag, tenant, "notes", "list", "--json").json["notes"]
    named = ("--note", notes[0]["externalId"])
    run(rag, tenant, "golden", "add", question, *named, *fields)
    golden = run(rag, tenant, "golden", "list", "--json").json["entries"][0]["id"]
    run(rag, tenant, "golden", "update", golden, "--answer", f"Otra vez {note}")
    run(rag, tenant, "key", "create", f"web de {note}")
    promote(url, tenant, evaluated(url, tenant))


def rows(url: str, condition: str) -> dict[str, int]:
    """How many rows of each table meet a condition; tables without any are left out."""
    with psycopg.connect(url) as connection:
        found: dict[str, int] = {}
        for name in own_tables():
            statement: Any = f"SELECT count(*) FROM {name} AS t WHERE {condition}"
            (count,) = connection.execute(statement).fetchone() or (0,)
            if count:
                found[name] = count
    return found


OF_ANA = "to_jsonb(t) ->> 'tenant_id' = 'ana'"
OF_BLAS = f"t::text LIKE '%blas%' OR t::text LIKE '%{SECRET}%'"


def test_nothing_of_a_tenant_remains(
    rag: Rag, corpus: Corpus, database: Database, database_url: str, files: LocalFiles
) -> None:
    """In no table a row that names it or quotes its notes; no file; of others nothing is lost."""
    furnish(rag, database_url, "blas", SECRET)
    furnish(rag, database_url, "ana", "el ascensor")
    upload = check_upload(b"Un texto.", "texto.txt", tenant="blas")
    with Database(database_url, tenant="blas") as own_database:
        register(own_database, files, upload, b"Un texto.")
    own, theirs = file_name("blas", b"b"), file_name("ana", b"a")
    for name in (own, theirs):
        files.write(name, b"x")
    before = rows(database_url, OF_ANA)
    assert {"notes", "chunks", "golden_history", "promotions", "api_keys"} <= set(before)
    assert set(rows(database_url, OF_BLAS)) >= set(before)

    left = run_deletion(rag, "blas")

    assert rows(database_url, OF_BLAS) == {}
    assert rows(database_url, OF_ANA) == before
    assert left["remaining"] == {}
    assert left["rows"]["notes"] == 2
    assert left["rows"]["golden_history"] == 2
    assert left["files"] == 2
    kept = list(stored(files, "documents"))
    assert kept == [theirs]
    names = [each["name"] for each in run(rag, "ana", "tenant", "list", "--json").json["tenants"]]
    assert "blas" not in names
    assert "ana" in names


def run_deletion(rag: Rag, tenant: str) -> dict[str, Any]:
    done = rag("ana", "tenant", "delete", tenant, "--yes", "--json")
    assert done.code == 0
    left: dict[str, Any] = done.json
    return left


def stored(files: LocalFiles, folder: str) -> list[str]:
    """The names of the files below a folder."""
    root = Path(files.where())
    return [str(path.relative_to(root)) for path in (root / folder).rglob("*") if path.is_file()]


def test_a_tenant_of_the_same_name_is_shown_no_cached_answer_of_the_other(
    rag: Rag, corpus: Corpus, database: Database
) -> None:
    """Its version of the index goes on where the other's ended."""
    with database.transaction() as connection:
        before = read_index_version(connection, "blas").number
    run_deletion(rag, "blas")
    with database.transaction() as connection:
        assert read_index_version(connection, "blas").number > before


def test_nothing_is_deleted_unconfirmed_or_of_nobody(
    rag: Rag, corpus: Corpus, database_url: str
) -> None:
    before = rows(database_url, OF_BLAS)
    done = rag("ana", "tenant", "delete", "blas")
    assert (
        done.code,
        _("Nothing was deleted. To delete without being asked, add --yes.") in done.err,
    ) == (2, True)
    done = rag("ana", "tenant", "delete", "nadie", "--yes")
    assert (
        done.code,
        _("There is no tenant named “{name}”. rag tenant list shows them.").format(name="nadie")
        in done.err,
    ) == (2, True)
    assert rows(database_url, OF_BLAS) == before
