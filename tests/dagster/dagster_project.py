"""A code location with one more configuration, and projects on it: databases, source, instance."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import dagster as dg
import psycopg
import pytest

from rag_assets.definitions import build_defs
from rag_assets.instance import prepare
from rag_assets.runs.failures import failure_reasons
from rag_resources.languages.labels import label
from rag_resources.settings import load_settings

CONFIGURATIONS = Path(__file__).parent / "configurations"

SAMPLE = Path(__file__).resolve().parent.parent.parent / "rag_assets" / "sample"
MONTHS = ("2025-01-01", "2025-02-01", "2025-03-01", "2025-04-01")
FILLER = "2025-04-08-bateria-sandero"

NOTES = dg.AssetKey("notes")
NOTE_EMBEDDINGS = dg.AssetKey("note_embeddings")
CHUNKS = dg.AssetKey("chunks")
EMBEDDINGS = dg.AssetKey(["embeddings", "use_multilingual"])
WINDOWS = dg.AssetKey(["windows", "use_multilingual"])
GOLDEN = dg.AssetKey("golden_dataset")
CANDIDATE = dg.AssetKey(["evaluation_results", "rapida"])
REFERENCE = dg.AssetKey(["evaluation_results", "baseline"])
PROMOTED = dg.AssetKey("promoted_config")


def definitions() -> dg.Definitions:
    """Build the definitions from the present environment, as a new code location does."""
    return build_defs(load_settings())


@dataclass(frozen=True)
class Corpus:
    """A folder of notes with the questions they answer."""

    notes: Path
    golden: Path

    def questions(self) -> list[dict[str, Any]]:
        """Read the golden questions."""
        return json.loads(self.golden.read_text("utf-8"))["entries"]

    def ask(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Replace the golden questions."""
        self.golden.write_text(json.dumps({"entries": list(entries)}), "utf-8")

    def copy(self, folder: Path) -> "Corpus":
        """Copy it, to be changed."""
        shutil.copytree(self.notes, folder / "notes")
        shutil.copyfile(self.golden, folder / "golden.json")
        return Corpus(folder / "notes", folder / "golden.json")

    def shorten(self, characters: int) -> None:
        """Keep the notes up to a length, and the questions that need no other."""
        for path in self.notes.rglob("*.md"):
            if len(path.read_text("utf-8")) > characters:
                path.unlink()
        kept = {path.stem for path in self.notes.rglob("*.md")}
        self.ask([entry for entry in self.questions() if kept.issuperset(entry["relevantNotes"])])


@dataclass(frozen=True)
class Project:
    """A RAG_HOME with its databases, its source and its open Dagster instance."""

    corpus: Corpus
    database_url: str
    instance: dg.DagsterInstance

    def run(
        self,
        *keys: dg.AssetKey,
        months: Sequence[str] = (),
        run_config: Mapping[str, Any] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """Materialise assets in one run, with their checks, over the months from first to last."""
        tags = {}
        if months:
            tags = {
                "dagster/asset_partition_range_start": min(months),
                "dagster/asset_partition_range_end": max(months),
            }
        return (
            definitions()
            .resolve_implicit_global_asset_job_def()
            .execute_in_process(
                instance=self.instance,
                asset_selection=list(keys),
                raise_on_error=False,
                run_config=run_config or {},
                tags=tags,
            )
        )

    def check(self, asset: dg.AssetKey, name: str) -> dg.AssetCheckEvaluation:
        """Run one check alone and return what it said."""
        job = (
            definitions()
            .resolve_implicit_global_asset_job_def()
            .get_subset(
                asset_selection=set(), asset_check_selection={dg.AssetCheckKey(asset, name)}
            )
        )
        result = job.execute_in_process(instance=self.instance, raise_on_error=False)
        return evaluation(result, asset, name)

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement on the application's database."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def note_id(self, external_id: str) -> UUID:
        """Return the id of a note."""
        return self.query("SELECT id FROM notes WHERE external_id = %s", external_id)[0][0]


def evaluation(
    result: dg.ExecuteInProcessResult, asset: dg.AssetKey, name: str
) -> dg.AssetCheckEvaluation:
    """Return what a check said in a run."""
    return next(
        item
        for item in result.get_asset_check_evaluations()
        if item.asset_check_key == dg.AssetCheckKey(asset, name)
    )


def materialised(
    result: dg.ExecuteInProcessResult, key: dg.AssetKey
) -> dict[str | None, dict[str, Any]]:
    """Return the metadata of an asset's materialisations in a run, by partition."""
    found: dict[str | None, dict[str, Any]] = {}
    for event in result.get_asset_materialization_events():
        if event.asset_key == key:
            assert event.partition not in found
            found[event.partition] = by_field(event.materialization.metadata)
    return found


class Fields(dict[str, Any]):
    """Metadata by the fields of the code, whatever they are called on the page."""

    def __missing__(self, field: str) -> Any:
        if label(field) == field:
            raise KeyError(field)
        return self[label(field)]

    def __contains__(self, field: object) -> bool:
        return super().__contains__(field) or super().__contains__(label(str(field)))


def by_field(metadata: Mapping[str, dg.MetadataValue[Any]]) -> Fields:
    """Return the values of metadata; none is shown under a name of the code."""
    assert [name for name in metadata if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", name)] == []
    return Fields({name: value.value for name, value in metadata.items()})


def failure_texts(result: dg.ExecuteInProcessResult) -> str:
    """Return what the failed steps of a run said."""
    return failure_reasons(result.all_events)


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Set variables temporarily; the variables that `prepare` sets are also restored."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("RAG_HOME", "DAGSTER_HOME", "DAGSTER_PG_URL"):
            patch.setenv(name, "")
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


def settle_in(project: Project) -> None:
    """Make a copied project one that was filled from its own files, at their own place."""
    with psycopg.connect(project.database_url) as connection:
        connection.execute("SET LOCAL session_replication_role = replica")  # history has a guard
        connection.execute(
            "UPDATE golden_history SET source = %s WHERE source <> ''",
            [str(project.corpus.golden.resolve())],
        )


@contextmanager
def opened(
    home: Path, database_url: str, dagster_url: str, corpus: Corpus, **others: str
) -> Iterator[Project]:
    """Prepare a home over two databases and open its instance."""
    with environment(**variables(home, database_url, dagster_url, corpus), **others):
        prepare(load_settings())
        with dg.DagsterInstance.get() as instance, kept_connections(instance):
            yield Project(corpus, database_url, instance)


@contextmanager
def kept_connections(instance: dg.DagsterInstance) -> Iterator[None]:
    """Keep the connections to Dagster's storage open, as the webserver does.

    Otherwise each event has a connection of its own: half of the time of a small run.
    """
    instance.optimize_for_webserver(statement_timeout=60_000, pool_recycle=3600, max_overflow=5)
    storages = (instance.run_storage, instance.event_log_storage, instance.schedule_storage)
    for storage in storages:
        storage._engine.pool._pre_ping = True  # Some tests kill the server.
    yield
    for storage in storages:
        storage._engine.dispose()


def variables(home: Path, database_url: str, dagster_url: str, corpus: Corpus) -> dict[str, str]:
    """Return the environment of a project."""
    return {
        "RAG_HOME": str(home),
        "DATABASE_URL": database_url,
        "DAGSTER_PG_URL": dagster_url,
        "NOTES_SOURCE": str(corpus.notes),
        "GOLDEN_SOURCE": str(corpus.golden),
        "RAG_CONFIGURATIONS": str(CONFIGURATIONS),
        # A busy machine must not decide what these tests want of the other gates.
        "GATE__LATENCY_P95_MS": "60000",
    }
