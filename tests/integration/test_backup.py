"""The commands of docs/operations.md, run: a restored database answers as the one backed up."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.types import RetrievalResponse
from rag_resources.database.binaries import find_binaries
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Access, Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.store.vector_indexes import ensure_vector_indexes
from tests.corpus import SMALL, Corpus, Draft
from tests.databases import server_folder

DOC = Path(__file__).parents[2] / "docs" / "operations.md"
QUESTIONS = ("¿Dónde duerme la gata 5?", "tejado 3", "perro")
DRAFTS = [
    *(Draft(f"La gata {n} duerme en el tejado {n % 7}.", state="new") for n in range(40)),
    *(Draft(f"El perro {n} de Blas ladra.", tenant="blas", state="new") for n in range(5)),
]


@pytest.fixture(scope="module")
def new_server() -> Iterator[EmbeddedServer]:
    """Another PostgreSQL, which knows neither the database nor the roles."""
    with TemporaryDirectory(prefix="rag-restored-", dir=server_folder()) as home:
        Path(home).chmod(0o755)
        own = EmbeddedServer(Path(home))
        own.up()
        yield own
        own.down()


def commands(heading: str) -> str:
    """Return the shell commands below a heading of the page."""
    section = DOC.read_text("utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return "\n".join(re.findall(r"```sh\n(.*?)```", section, re.S))


def run(script: str, folder: Path, **variables: str) -> None:
    """Run commands in a folder, with PostgreSQL's own programs."""
    path = f"{find_binaries(None)}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", script],
        cwd=folder,
        env={**os.environ, **variables, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def answers(database: Database, model: str) -> list[RetrievalResponse]:
    """Ask as the reader of a tenant does."""
    corpus = Corpus(database)
    corpus.database = database.as_(Access.READER)
    pipeline = corpus.pipeline()
    return [pipeline.retrieve(question, RetrievalConfig(model=model)) for question in QUESTIONS]


@pytest.mark.parametrize("tenant", ["ana"])
def test_a_restored_database_answers_as_before_and_keeps_tenants_apart(
    database: Database,
    database_url: str,
    new_server: EmbeddedServer,
    create_database: Callable[..., str],
    tmp_path: Path,
) -> None:
    """On a new server, and on one that has the roles already."""
    corpus = Corpus(database)
    corpus.fill(DRAFTS)
    corpus.index(SMALL)
    model = corpus.embedder.info
    ensure_vector_indexes(database, model, min_rows=10)
    before = answers(database, model.name)
    assert all(response.results for response in before[:2])
    dagster = create_database()
    run(commands("Back up"), tmp_path, DATABASE_URL=database_url, DAGSTER_PG_URL=dagster)
    for time in ("once", "twice"):
        urls = {}
        for variable in ("DATABASE_URL", "DAGSTER_PG_URL"):
            name = f"{variable.lower()}_{time}"
            new_server.ensure_database(name)
            urls[variable] = new_server.dsn(name)
        run(commands("Restore"), tmp_path, **urls)
        assert migrate(urls["DATABASE_URL"]) == []  # `rag up`
        with Database(urls["DATABASE_URL"], tenant="ana") as restored:
            after = answers(restored, model.name)
            assert [
                [(r.chunk_id, r.score, r.content) for r in response.results] for response in after
            ] == [
                [(r.chunk_id, r.score, r.content) for r in response.results] for response in before
            ]
            with restored.as_(Access.READER).transaction() as connection:
                assert connection.execute("SELECT current_user").fetchone() == ("rag_reader",)
                seen = connection.execute("SELECT DISTINCT tenant_id FROM notes").fetchall()
                assert seen == [("ana",)]
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute("DELETE FROM notes")
