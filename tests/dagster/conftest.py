"""A real Dagster instance over PostgreSQL, and a small corpus.

`project` is empty; `indexed` starts as a copy of one whose sixteen notes are indexed, with the runs
that did it. Only the fast model is run, but where a test says otherwise.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster_project import (
    CHUNKS,
    EMBEDDINGS,
    FILLER,
    GOLDEN,
    MONTHS,
    NOTE_EMBEDDINGS,
    NOTES,
    SAMPLE,
    Corpus,
    Project,
    environment,
    opened,
    prepare,
    settle_in,
)

from rag_resources.database.server import EmbeddedServer
from rag_resources.settings import load_settings
from tests.databases import cloned


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Sixteen sample notes of four months, and eight plain questions about these notes only."""
    folder = tmp_path_factory.mktemp("corpus")
    entries = json.loads((SAMPLE / "golden.json").read_text("utf-8"))["entries"]
    first, last = MONTHS[0][:7], MONTHS[-1][:7]
    chosen = [e for e in entries if all(first <= n[:7] <= last for n in e["relevantNotes"])]
    for name in {FILLER, *(name for entry in chosen for name in entry["relevantNotes"])}:
        target = folder / "notes" / name[:7] / f"{name}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SAMPLE / "notes" / name[:7] / f"{name}.md", target)
    made = Corpus(folder / "notes", folder / "golden.json")
    made.ask([entry for entry in chosen if entry["category"] in {"factual", "temporal"}])
    return made


@pytest.fixture(scope="session")
def dagster_template(
    server: EmbeddedServer, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Name of an empty Dagster storage that tests clone: creating one takes seconds."""
    name = "template_dagster"
    server.ensure_database(name)
    with environment(
        RAG_HOME=str(tmp_path_factory.mktemp("template")),
        DATABASE_URL=server.dsn(template_database),
        DAGSTER_PG_URL=server.dsn(name),
    ):
        prepare(load_settings())
    return name


@pytest.fixture
def project(
    server: EmbeddedServer,
    template_database: str,
    dagster_template: str,
    corpus: Corpus,
    tmp_path: Path,
) -> Iterator[Project]:
    """A project of its own with nothing in its databases."""
    with cloned(server, template_database, dagster_template) as (database, dagster):
        own = corpus.copy(tmp_path)
        with opened(tmp_path / "home", server.dsn(database), server.dsn(dagster), own) as made:
            yield made


@pytest.fixture(scope="session")
def indexed_templates(
    server: EmbeddedServer,
    template_database: str,
    dagster_template: str,
    corpus: Corpus,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, str]]:
    """Names of the databases of a project whose months are indexed."""
    home = tmp_path_factory.mktemp("indexed")
    with cloned(server, template_database, dagster_template) as (database, dagster):
        with opened(home, server.dsn(database), server.dsn(dagster), corpus) as made:
            assert made.run(NOTES, NOTE_EMBEDDINGS, CHUNKS, EMBEDDINGS, months=MONTHS).success
            assert made.run(GOLDEN).success
        yield database, dagster


@pytest.fixture
def indexed(
    server: EmbeddedServer, indexed_templates: tuple[str, str], corpus: Corpus, tmp_path: Path
) -> Iterator[Project]:
    """A project of its own whose four months are indexed and whose questions are imported."""
    with cloned(server, *indexed_templates) as (database, dagster):
        own = corpus.copy(tmp_path)
        with opened(tmp_path / "home", server.dsn(database), server.dsn(dagster), own) as made:
            settle_in(made)
            yield made
