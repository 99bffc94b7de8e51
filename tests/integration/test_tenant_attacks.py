"""What a tenant tries over HTTP and in the terminal to learn of another one, or to change it."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest

from rag_resources.application import open_application
from rag_resources.core.api_keys import ApiRole
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.database.schema import own_tables
from rag_resources.database.server import EmbeddedServer
from rag_resources.indexing.chunk import chunk_window
from rag_resources.ingestion.ingest import ingest
from rag_resources.settings import load_settings
from rag_resources.store.api_keys import Keys
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.contents import count_contents
from rag_resources.store.document_list import ALWAYS
from rag_resources.store.notes import note_id
from tests.api_server import ApiServer, serving
from tests.command_line import Outcome, call_rag, isolate
from tests.databases import cloned
from tests.stored_evaluations import Asked, store_evaluation

DAY = datetime(2025, 1, 12, tzinfo=UTC)
GUESSED = "zarapito"
"""A word of the victim's notes that the attacker asks for."""

HIDDEN = re.compile("cormor[aá]n", re.IGNORECASE)
"""A word of the victim's notes, names, files and questions that the attacker does not know."""

THEIRS = NoteRecord(
    "clave-del-cormoran",
    "La caja fuerte del cormorán",
    f"El código de la caja fuerte es {GUESSED}. El cormorán lo apuntó el lunes.",
    DAY,
    tags=("caja fuerte",),
    metadata={"lugar": "caja fuerte"},
)
PLAN = f"El plan: el cormorán y el {GUESSED} vuelven en marzo.\n".encode()
OWN = NoteRecord("propia", "La cena", "Marta vino a cenar el lunes con una tarta.", DAY)
FULLTEXT = {"configuration": "fulltext"}


@dataclass(frozen=True)
class Victim:
    """What there is of the tenant that is attacked: ids by the name of a path's parameter."""

    ids: dict[str, UUID]

    def known(self) -> list[str]:
        """Every id, as text."""
        return [str(each) for each in self.ids.values()]


@pytest.fixture(scope="module")
def url(server: EmbeddedServer, template_database: str) -> Iterator[str]:
    """URL of a database of two tenants."""
    with cloned(server, template_database) as (name,):
        for tenant, record in (("victima", THEIRS), ("atacante", OWN)):
            with Database(server.dsn(name), tenant=tenant) as database:
                ingest(database, [record], tenant=tenant, source="notes")
                chunk_window(database, ALWAYS, ChunkingConfig())
                with database.transaction() as connection:
                    refresh_statistics(connection)
        yield server.dsn(name)


@pytest.fixture(scope="module")
def keys(url: str) -> dict[str, str]:
    """Keys of both, with all rights within the own tenant."""
    made = {}
    for tenant in ("victima", "atacante"):
        with Database(url, tenant=tenant) as database:
            made[tenant], _ = Keys(database).create("prueba", ApiRole.OWNER)
    return made


@pytest.fixture(scope="module")
def api(
    url: str, keys: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiServer]:
    """A server that serves both."""
    assert keys
    folder = tmp_path_factory.mktemp("attacks")
    files = (folder / "files").as_uri()
    with serving(folder, url, FILES_URL=files, ANSWER_LOG_TEXT="all") as running:
        yield running


def as_(api: ApiServer, key: str, **headers: str) -> httpx.Client:
    """Return a client that calls with a key."""
    sent = {"authorization": f"Bearer {key}", **headers}
    return httpx.Client(base_url=api.url, headers=sent, timeout=60)


@pytest.fixture(scope="module")
def victim(url: str, api: ApiServer, keys: dict[str, str], tmp_path_factory: Any) -> Victim:
    """Everything that a tenant can have, made by the tenant itself."""
    with as_(api, keys["victima"]) as client:
        file = ("cormorán.txt", PLAN)
        document = client.post("/v1/documents", files={"file": file}, data={"title": "El cormorán"})
        assert document.status_code == HTTPStatus.ACCEPTED, document.text
        golden = client.post(
            "/v1/golden-dataset",
            json={
                "query": "¿Cuál es el código de la caja fuerte?",
                "expectedAnswer": "El del cormorán.",
                "relevantNotes": [THEIRS.external_id],
                "category": "factual",
                "difficulty": 1,
            },
        )
        assert golden.status_code == HTTPStatus.CREATED, golden.text
        answer = client.post(
            "/v1/answers", json={"query": "¿Cuál es el código?", **FULLTEXT}
        ).json()
        assert GUESSED in json.dumps(answer)
    settings = load_settings(
        tenant="victima",
        rag_home=tmp_path_factory.mktemp("runs"),
        database_url=url,
        files_url=(api.log.parent / "files").as_uri(),
    )
    with open_application(settings) as application:
        application.documents.extract(ALWAYS)
        application.documents.apply(ALWAYS)
    note = note_id("victima", "notes", THEIRS.external_id)
    with Database(url, tenant="victima") as database:
        asked = [Asked(1, [note], [note], text="¿Dónde está el cormorán?")]
        evaluation = store_evaluation(database, "fulltext", asked)
    with Database(url, tenant="victima") as database, database.transaction() as connection:
        # What the server counts of everybody is counted.
        refresh_statistics(connection)
        count_contents(connection)
    return Victim(
        {
            "note_id": note,
            "document_id": UUID(document.json()["id"]),
            "golden_id": UUID(golden.json()["id"]),
            "evaluation_id": evaluation,
            "answer_id": UUID(answer["answerId"]),
        }
    )


def everything(url: str, tenant: str) -> dict[str, list[Any]]:
    """All rows of a tenant, but those that say when a key was used."""
    with psycopg.connect(url) as connection:
        found = {}
        for table in own_tables():
            statement: Any = (
                f"SELECT t::text FROM {table} AS t WHERE to_jsonb(t) ->> 'tenant_id' = %s"
            )
            if table != "api_keys":
                found[table] = sorted(connection.execute(statement, [tenant]).fetchall())
        return found


@pytest.fixture
def untouched(url: str, victim: Victim) -> Iterator[None]:
    """Check that nothing of the victim changed meanwhile."""
    before = everything(url, "victima")
    assert before["notes"]
    yield
    assert everything(url, "victima") == before


def told(response: httpx.Response, *ids: str) -> str:
    """Return what a response says, with the ids that were asked for left out; nothing leaks."""
    text = response.text
    for each in ids:
        text = text.replace(each, "ID")
    assert not HIDDEN.search(text), text
    kept = {name: response.headers[name] for name in ("content-type",) if name in response.headers}
    without_request = re.sub(r'"(requestId|instance|createdAt|id)":\s?"[^"]*"', "", text)
    return f"{response.status_code} {kept} {without_request}"


def operations(api: ApiServer) -> list[tuple[str, str, list[str]]]:
    """Every method and path of the schema, with the parameters in the path."""
    schema = api.client.get("/openapi.json").json()
    found = [
        (method, path, re.findall(r"{(\w+)", path))
        for path, methods in schema["paths"].items()
        for method in methods
    ]
    assert len(found) > 20
    return found


BODIES: dict[str, Any] = {
    "put": {"query": "¿Otra?"},
    "patch": {"metadata": {"de": "otra"}},
    "post": {},
}


@pytest.mark.usefixtures("untouched")
def test_an_id_of_another_tenant_is_as_unknown_as_one_of_nobody(
    api: ApiServer, keys: dict[str, str], victim: Victim
) -> None:
    """On every path of the API that takes one, by every method: the same status and words."""
    tried = set()
    with as_(api, keys["atacante"]) as client:
        for method, path, names in operations(api):
            ids = [name for name in names if name in victim.ids]
            if not ids:
                continue
            said = []
            for known in (True, False):
                values = {name: str(victim.ids[name] if known else uuid4()) for name in ids}
                filled = {**dict.fromkeys(names, "1"), **values}
                given = BODIES.get(method)
                if method == "patch" and "golden_id" in names:
                    given = BODIES["put"]
                body = {"json": given} if given is not None else {}
                response = client.request(method, path.format(**filled), **body)
                assert response.is_client_error, (method, path, response.text)
                said.append(told(response, *values.values()))
            assert said[0] == said[1], (method, path)
            tried.add(ids[0])
    assert tried == {"note_id", "document_id", "golden_id", "evaluation_id"}


def searches(victim: Victim) -> list[tuple[str, dict[str, Any]]]:
    """Requests that name what is another's in every field that could."""
    filters: list[dict[str, Any]] = [
        {"noteIds": [str(victim.ids["note_id"])]},
        {"excludedNoteIds": [str(uuid4())]},
        {"tags": list(THEIRS.tags)},
        {"metadata": dict(THEIRS.metadata)},
        {"source": "notes"},
    ]
    question: dict[str, Any] = {"query": f"¿Cuál es el código {GUESSED} de la caja?", **FULLTEXT}
    asked: list[tuple[str, dict[str, Any]]] = [
        (path, question) for path in ("/v1/retrieve", "/api/retrieve", "/v1/answers")
    ]
    asked += [("/v1/retrieve", question | {"filters": each}) for each in filters]
    asked += [("/v1/answers", question | {"filters": each}) for each in filters]
    asked += [
        ("/v1/answers", question | {"conversation": ["¿Qué código tiene la caja fuerte?"]}),
        ("/v1/answers", question | {"stream": True}),
        ("/api/v1/query", {"query": question["query"], "source": "notes"}),
        ("/api/v1/query", {"query": question["query"], "tags": list(THEIRS.tags)}),
        (
            "/v1/chat/completions",
            {"model": "fulltext", "messages": [{"role": "user", "content": question["query"]}]},
        ),
        ("/v1/retrieve", question | {"tenant": "victima"}),
        ("/v1/retrieve", question | {"config": {"tenant": "victima"}}),
        ("/v1/retrieve", question | {"filters": {"tenantId": "victima"}}),
        ("/v1/retrieve", question | {"filters": {"metadata": {"tenant_id": "victima"}}}),
        ("/v1/retrieve", question | {"configuration": "../victima"}),
        ("/v1/retrieve", question | {"query": "' OR tenant_id = 'victima' --"}),
    ]
    return asked


@pytest.mark.usefixtures("untouched")
def test_no_question_finds_what_is_anothers(
    api: ApiServer, keys: dict[str, str], victim: Victim
) -> None:
    """Asked twice, so that the cache is asked too; with headers that name the other as well."""
    naming = {"x-tenant": "victima", "x-tenant-id": "victima", "tenant": "victima"}
    with as_(api, keys["atacante"], **naming) as client, as_(api, keys["victima"]) as owner:
        for path, body in searches(victim):
            if "answers" not in path and "chat" not in path:
                owner.post(path, json=body)
            for _ in range(2):
                response = client.post(path, json=body, params={"tenant": "victima"})
                told(response)
                for each in victim.known():
                    if each not in json.dumps(body):
                        assert each not in response.text, (path, body)
                found = response.json() if "json" in response.headers["content-type"] else {}
                titles = {result["title"] for result in found.get("results", [])}
                assert titles <= {OWN.title}, (path, body)


@pytest.mark.usefixtures("untouched")
def test_no_list_shows_what_is_anothers(
    api: ApiServer, keys: dict[str, str], victim: Victim
) -> None:
    """Every path that is read without an id, the metrics and the tools of agents included."""
    with as_(api, keys["atacante"]) as client:
        for method, path, names in operations(api):
            if method != "get" or set(names) & victim.ids.keys():
                continue
            response = client.get(path.format(**dict.fromkeys(names, "app.js")))
            said = told(response)
            assert not any(each in said for each in victim.known()), path
            assert "victima" not in said, path
        total = client.get("/v1/golden-dataset").json()["total"]
        assert total == 0
        calls = [("get_note", {"id": str(victim.ids["note_id"])})]
        calls += [(tool, {"query": "código caja"}) for tool in ("search_notes", "ask_notes")]
        for number, (tool, arguments) in enumerate(calls):
            call = {
                "jsonrpc": "2.0",
                "id": number,
                "method": "tools/call",
                "params": {"name": tool, "arguments": arguments},
            }
            accepted = {"accept": "application/json, text/event-stream"}
            response = client.post("/mcp", json=call, headers=accepted)
            assert response.status_code == HTTPStatus.OK, response.text
            told(response)


@pytest.mark.usefixtures("untouched")
def test_nothing_of_another_is_written_to(
    api: ApiServer, keys: dict[str, str], victim: Victim
) -> None:
    """Feedback on its answer, a question about its note, its file and its key of a request."""
    answer = str(victim.ids["answer_id"])
    with as_(api, keys["atacante"]) as client:
        said = []
        for answer_id in (answer, str(uuid4())):
            for citation in (None, 1):
                body = {"answerId": answer_id, "verdict": "down", "citation": citation}
                response = client.post("/v1/feedback", json=body)
                assert response.status_code == HTTPStatus.NOT_FOUND
                said.append(told(response, answer_id))
        assert said[:2] == said[2:]
        said = []
        for note in (THEIRS.external_id, "de-nadie-ninguna-nota", str(victim.ids["note_id"])):
            fields = {"expectedAnswer": "x", "category": "factual", "difficulty": 1}
            question: dict[str, Any] = {"query": f"¿{note[:2]}?", "relevantNotes": [note]}
            response = client.post("/v1/golden-dataset", json=question | fields)
            assert response.status_code == HTTPStatus.BAD_REQUEST
            said.append(told(response, note, f"¿{note[:2]}?"))
        assert len(set(said)) == 1, said
        rows = {"entries": [{"id": str(victim.ids["golden_id"]), "query": "¿Robada?"}]}
        told(client.post("/v1/golden-dataset/import", json=rows, params={"replace": True}))
        # The same file is a document of one's own, of which the other's owner learns nothing.
        file = ("copia.txt", PLAN)
        uploaded = client.post("/v1/documents", files={"file": file})
        assert uploaded.json()["id"] != str(victim.ids["document_id"])
        assert uploaded.json()["title"] in ("copia", "copia.txt")
        deleted = client.delete(f"/v1/documents/{uploaded.json()['id']}")
        assert deleted.status_code == HTTPStatus.NO_CONTENT
    with as_(api, keys["victima"]) as owner:
        page = owner.get(f"/v1/documents/{victim.ids['document_id']}").json()
        assert (page["pages"], page["failures"]) == (1, [])
        assert owner.get("/v1/documents").json()["total"] == 1


def test_no_key_is_widened(api: ApiServer, keys: dict[str, str]) -> None:
    """The other's identifier with one's own secret opens nothing."""
    own, theirs = keys["atacante"], keys["victima"]
    with as_(api, f"{theirs.rpartition('_')[0]}_{own.rpartition('_')[2]}") as client:
        assert client.get("/v1/me").status_code == HTTPStatus.UNAUTHORIZED


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, url: str
) -> Callable[..., Outcome]:
    """Call `rag` as the attacker."""
    isolate(monkeypatch, tmp_path, DATABASE_URL=url, TENANT="atacante")
    return lambda *arguments: call_rag(monkeypatch, capsys, *arguments)


COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("note_id", ("notes", "show", "{id}")),
    ("note_id", ("notes", "delete", "{id}", "--yes")),
    ("note_id", ("notes", "restore", "{id}")),
    ("note_name", ("notes", "show", "{id}")),
    ("document_id", ("document", "show", "{id}")),
    ("document_id", ("document", "delete", "{id}", "--yes")),
    ("document_id", ("document", "extract", "{id}")),
    ("golden_id", ("golden", "show", "{id}")),
    ("golden_id", ("golden", "update", "{id}", "--answer", "x")),
    ("golden_id", ("golden", "delete", "{id}", "--yes")),
    ("answer_id", ("answers", "show", "{id}")),
    ("answer_id", ("feedback", "{id}", "down")),
    ("evaluation_id", ("compare", "{id}", "{id}")),
)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(("kind", "command"), COMMANDS, ids=lambda each: " ".join(each[:2]))
def test_a_command_tells_nothing_of_what_is_anothers(
    victim: Victim, rag: Callable[..., Outcome], kind: str, command: tuple[str, ...]
) -> None:
    """It says what it says of an id that nobody has."""
    theirs = THEIRS.external_id if kind == "note_name" else str(victim.ids[kind])
    nobodys = "clave-de-las-vecinas" if kind == "note_name" else str(uuid4())
    said = []
    for known in (theirs, nobodys):
        done = rag(*(part.format(id=known) for part in command))
        assert done.code == 2, done
        said.append((done.out + done.err).replace(known, "ID"))
        assert not HIDDEN.search(said[-1])
    assert said[0] == said[1]


LISTS: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("status", "--json"),
    ("doctor", "--json"),
    ("notes", "list", "--json"),
    ("notes", "list", "--deleted", "--json"),
    ("document", "list", "--json"),
    ("golden", "list", "--json"),
    ("answers", "list", "--json"),
    ("key", "list", "--json"),
    ("retrieve", f"código {GUESSED}", "--config", "fulltext", "--json"),
    ("ask", f"¿Cuál es el código {GUESSED}?", "--config", "fulltext", "--json"),
)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_a_list_in_the_terminal_has_nothing_of_anothers(
    victim: Victim, rag: Callable[..., Outcome], command: tuple[str, ...]
) -> None:
    done = rag(*command)
    text = done.out + done.err
    assert done.code in (0, 1), text
    assert not HIDDEN.search(text)
    assert not any(each in text for each in victim.known())
