"""The HTTP API, in a process of its own, over real HTTP."""

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.api_keys import ApiRole
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import NoteRecord, TimeWindow
from rag_resources.core.wording import says_something
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from rag_resources.providers.registry import build_embedder
from rag_resources.store.api_keys import Keys
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.models import register_model
from rag_resources.store.notes import note_id
from tests.api_server import ApiServer, serving, starting
from tests.databases import cloned
from tests.language_models import reply
from tests.ollama_server import Fault
from tests.openai_server import OpenAIServer
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
DAY = datetime(2025, 1, 12, tzinfo=UTC)
QUESTION = "¿Cuánto pide el taller?"
COST = "El taller pide 415 euros por arreglar la dirección de la furgoneta."
SEARCH = {"query": QUESTION, "configuration": "hybrid_use"}
RECORDS = (
    NoteRecord("furgo", "La furgoneta", COST, DAY, tags=("diario", "coche")),
    NoteRecord("gata", "La gata", "La gata Nube se escapó por la ventana.", DAY, tags=("diario",)),
)
RECEIVED_LATE = 7


@pytest.fixture(scope="module")
def url(server: EmbeddedServer, template_database: str) -> Iterator[str]:
    """URL of a database with two indexed notes, and a note of another tenant."""
    with cloned(server, template_database) as (name,):
        with Database(server.dsn(name)) as database:
            ingest(database, RECORDS, tenant="default", source="notes")
            index(database)
        foreign = [NoteRecord("ajena", "Ajena", "El taller ajeno pide 999 euros.", DAY)]
        with Database(server.dsn(name), tenant="vecina") as database:
            ingest(database, foreign, tenant="vecina", source="notes")
        yield server.dsn(name)


def index(database: Database) -> None:
    embedder = build_embedder("use_multilingual")
    with database.transaction() as connection:
        register_model(
            connection, embedder.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
        )
    chunk_window(database, ALWAYS, ChunkingConfig())
    embed_chunks(database, embedder, ALWAYS)
    embed_notes(database, embedder, ALWAYS)
    with database.transaction() as connection:
        refresh_statistics(connection)


@pytest.fixture(scope="module")
def api(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server that has no keys yet, with short limits."""
    folder = tmp_path_factory.mktemp("api")
    files = (folder / "files").as_uri()
    with serving(folder, url, FILES_URL=files) as running:
        yield running


def problem(response: httpx.Response, status: HTTPStatus) -> dict[str, Any]:
    """Check that a response is a problem, and return it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    read: dict[str, Any] = response.json()
    assert read["status"] == status
    assert read["error"]
    assert isinstance(read["details"], list)
    assert "Traceback" not in response.text
    return read


RESULT = {"chunkId", "noteId", "externalId", "content", "expandedContent", "score"}
FOUND_BY = {"chunkIndex", "matchedChunkBounds", "retrievalMethod"}


@given(
    query=st.text(min_size=1, max_size=60).filter(lambda text: text.strip()),
    strategy=st.sampled_from(["fulltext", "semantic", "hybrid"]),
    top_k=st.integers(1, 50),
)
def test_property_37_a_successful_answer_has_complete_results(
    api: ApiServer, query: str, strategy: str, top_k: int
) -> None:
    body = SEARCH | {"query": query, "config": {"strategy": strategy}, "topK": top_k}
    sent = json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    response = api.client.post("/v1/retrieve", content=sent, headers=headers)
    if response.status_code == HTTPStatus.BAD_REQUEST:  # blank or without a word for the core
        assert not (query.isprintable() and says_something(query, "es"))
        return
    assert response.status_code == HTTPStatus.OK, response.text
    results = response.json()["results"]
    assert len(results) <= top_k
    for result in results:
        assert result.keys() >= RESULT
        assert result["metadata"].keys() >= FOUND_BY
        assert 0 <= result["score"] <= 1


WRONG = st.one_of(
    st.tuples(st.just("topK"), st.one_of(st.integers(max_value=0), st.integers(51), st.text())),
    st.tuples(st.just("query"), st.one_of(st.integers(), st.just(""), st.none())),
    st.tuples(st.just("filters"), st.one_of(st.integers(), st.text(), st.lists(st.none()))),
    st.tuples(st.just("language"), st.one_of(st.just("de"), st.integers())),
    st.tuples(st.from_regex(r"[a-z]{1,10}X", fullmatch=True), st.integers()),
)


@given(wrong=WRONG)
def test_property_38_an_invalid_request_is_told_the_field_in_spanish(
    api: ApiServer, wrong: tuple[str, Any]
) -> None:
    field, value = wrong
    response = api.client.post("/v1/retrieve", json=SEARCH | {field: value})
    read = problem(response, HTTPStatus.BAD_REQUEST)
    assert read["error"] == _("Invalid parameters")
    assert any(line.partition(":")[0].partition(".")[0] == field for line in read["details"])


ASK, IMPORT, FEEDBACK = "/v1/retrieve", "/v1/golden-dataset/import", "/v1/feedback"
BAD, MISSING = HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND
FOREIGN = re.compile(r"\bNone\b|Traceback|\w+Error\b|Input should|is not a|must be|<class")
"""What must never reach a caller."""

WRONG_REQUESTS: list[tuple[str, str, Any, HTTPStatus, list[str]]] = [
    ("POST", ASK, {}, BAD, ["query", "falta"]),
    ("POST", ASK, SEARCH | {"query": " "}, BAD, ["vacía", "Escribe qué quieres buscar"]),
    ("POST", ASK, SEARCH | {"query": "¿?"}, BAD, ["ninguna palabra que buscar"]),
    ("POST", ASK, SEARCH | {"query": "x" * 9_000}, BAD, ["query"]),
    ("POST", ASK, SEARCH | {"query": 3}, BAD, ["query", "texto"]),
    ("POST", ASK, SEARCH | {"topK": 0}, BAD, ["topK", "1"]),
    ("POST", ASK, SEARCH | {"topK": "tres"}, BAD, ["topK", "«tres»"]),
    ("POST", ASK, SEARCH | {"configuration": "otra"}, BAD, ["«otra»"]),
    ("POST", ASK, SEARCH | {"config": {"strategy": "magia"}}, BAD, ["config.strategy", "«magia»"]),
    ("POST", ASK, SEARCH | {"config": {"strategi": "x"}}, BAD, ["strategi", "strategy"]),
    ("POST", ASK, SEARCH | {"config": 7}, BAD, ["config"]),
    ("POST", ASK, SEARCH | {"filters": {"createdFrom": "ayer"}}, BAD, ["createdFrom", "«ayer»"]),
    ("POST", ASK, SEARCH | {"filters": {"etiqueta": "x"}}, BAD, ["etiqueta", "desconocida"]),
    ("POST", ASK, SEARCH | {"topk": 3}, BAD, ["topk", "topK"]),
    ("POST", ASK, SEARCH | {"filters": {"noteids": []}}, BAD, ["filters.noteids", "noteIds"]),
    ("POST", ASK, SEARCH | {"filters": {"noteIds": ["x"]}}, BAD, ["noteIds"]),
    ("POST", ASK, SEARCH | {"language": "de"}, BAD, ["language"]),
    ("POST", "/v1/answers", {"query": ""}, BAD, ["query"]),
    ("POST", FEEDBACK, {"answerId": "x", "verdict": "up"}, BAD, ["answerId"]),
    ("POST", IMPORT, {"entries": [{"query": "x"}]}, BAD, ["entrada 1"]),
    ("GET", "/v1/evaluations?limit=0", None, BAD, ["limit", "0"]),
    ("GET", "/v1/evaluations/x", None, MISSING, ["/v1/evaluations/x"]),
    ("GET", f"/v1/notes/{UUID(int=0)}", None, MISSING, []),
    ("GET", "/v1/nada", None, MISSING, ["/v1/nada"]),
    ("GET", "/v1/notes/caldera", None, MISSING, ["/v1/notes/caldera"]),
    (
        "GET",
        "/v1/evaluations?limite=3",
        None,
        BAD,
        ["limite: clave desconocida", "limit"],
    ),
    ("PUT", ASK, None, HTTPStatus.METHOD_NOT_ALLOWED, ["PUT", ASK, "POST", "/docs"]),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    WRONG_REQUESTS,
    ids=[f"{method} {path} {body}"[:60] for method, path, body, *__ in WRONG_REQUESTS],
)
def test_a_wrong_request_is_told_place_cause_and_status(
    api: ApiServer, method: str, path: str, body: Any, status: HTTPStatus, said: list[str]
) -> None:
    told = problem(api.client.request(method, path, json=body), status)
    for part in said:
        assert part in told["detail"]
    assert told["error"]
    assert not FOREIGN.search(told["detail"])


@pytest.mark.parametrize(
    ("content", "type_", "detail"),
    [
        ("{", "application/json", _("the body is not valid JSON")),
        *(
            (other, "application/json", _("the body must be a JSON object, in braces"))
            for other in ("[]", '"x"', "3")
        ),
        ("[]", "text/plain", _("the body must be JSON (Content-Type: application/json)")),
        ("{}", "text/plain", _("the body must be JSON (Content-Type: application/json)")),
        ("", "application/json", ""),
    ],
)
def test_a_body_that_is_no_object_is_refused(
    api: ApiServer, content: str, type_: str, detail: str
) -> None:
    headers = {"content-type": type_}
    response = api.client.post("/v1/retrieve", content=content, headers=headers)
    assert any(detail in line for line in problem(response, HTTPStatus.BAD_REQUEST)["details"])


def test_a_body_has_a_limit(api: ApiServer) -> None:
    """Also one that does not say its length, as it arrives."""
    long = b"x" * 1_100_000
    problem(api.client.post("/v1/retrieve", content=long), HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    response = api.client.post("/v1/retrieve", content=iter([long]))
    assert "1024" in problem(response, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)["error"]


def test_unknown_paths_and_methods_are_problems(api: ApiServer) -> None:
    unknown = problem(api.client.get("/nada"), HTTPStatus.NOT_FOUND)
    assert unknown["title"] == "No existe"
    assert "/docs" in unknown["error"]
    response = api.client.put("/v1/golden-dataset")
    problem(response, HTTPStatus.METHOD_NOT_ALLOWED)
    assert response.headers["allow"] == "GET, POST"


def test_head_and_options_are_answered(api: ApiServer) -> None:
    head = api.client.head("/healthz")
    assert (head.status_code, head.content) == (HTTPStatus.OK, b"")
    options = api.client.options("/v1/answers")
    assert (options.status_code, options.headers["allow"]) == (HTTPStatus.NO_CONTENT, "POST")
    assert "access-control-allow-origin" not in options.headers


def test_an_answer_is_json_or_events(api: ApiServer) -> None:
    answer = api.client.post("/v1/answers", json=SEARCH).json()
    assert answer["sentences"][0]["text"] == COST
    assert answer["sentences"][0]["citations"][0]["noteId"] == str(
        note_id("default", "notes", "furgo")
    )
    assert answer["silence"] == {
        "silent": False,
        "missing": _(
            "“rag calibrate” is missing, which takes 20 questions that succeed and 20 that fail"
        ),
    }
    streamed = api.client.post("/v1/answers", json=SEARCH | {"stream": True})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert streamed.headers["cache-control"] == "no-store"
    assert streamed.headers["x-accel-buffering"] == "no"
    events = [event.partition("\ndata: ") for event in streamed.text.strip().split("\n\n")]
    assert [name for name, __, __ in events] == ["event: sentence", "event: done"]
    assert json.loads(events[0][2])["text"] == COST
    assert json.loads(events[1][2])["sentences"] == answer["sentences"]


def test_a_client_that_leaves_ends_the_models_work(url: str, tmp_path: Path) -> None:
    """The model falls silent, before the first sentence or after it, and is left at once."""
    written = reply((COST, [1]), (" ".join(["Cenamos sopa caliente."] * 30), [1]))
    with OpenAIServer(answers=lambda *_: written) as model:
        variables = {"LLM_MODEL": "openai:llama3.2", "OPENAI_BASE_URL": model.base_url}
        with serving(tmp_path, url, **variables) as api:
            model.inject(Fault.STALL, times=1, seconds=3_600)
            with asking(api) as caller:
                read = b""
                while b"event: sentence" not in read:
                    read += caller.recv(1)
            wait_until(lambda: model.open_connections == 0)
            model.inject(Fault.SLOW, times=1, seconds=3_600)
            with asking(api):
                wait_until(lambda: len(model.requests) == 2)
            wait_until(lambda: model.open_connections == 0)


def asking(api: ApiServer) -> socket.socket:
    """Ask for an answer sentence by sentence; who closes the connection leaves."""
    port = api.client.base_url.port
    body = json.dumps(SEARCH | {"stream": True})
    caller = socket.create_connection(("127.0.0.1", port), 60)
    caller.sendall(
        f"POST /v1/answers HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    return caller


def test_the_client_of_openai_gets_cited_answers(api: ApiServer) -> None:
    with openai.OpenAI(base_url=f"{api.url}/v1", api_key="ninguna", timeout=60) as client:
        assert "hybrid_use" in {model.id for model in client.models.list()}
        asked: Any = [{"role": "user", "content": QUESTION}]
        whole = client.chat.completions.create(model="hybrid_use", messages=asked, temperature=0)
        text = whole.choices[0].message.content
        assert text == f"{COST} [1]\n\n[1] La furgoneta, 2025-01-12"
        with client.chat.completions.create(
            model="hybrid_use", messages=asked, stream=True
        ) as stream:
            pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
        assert len(pieces) > 2
        assert "".join(pieces) == text
        assert whole.model_extra
        assert whole.model_extra["reading"]["implied"] == []
        named: Any = [{"role": "user", "content": f"{QUESTION} (en enero de 2025)"}]
        shown = client.chat.completions.create(model="hybrid_use", messages=named)
        only = _("Only {value} (because of “{text}”)").format(
            value="2025-01-01 – 2025-01-31", text="en enero de 2025"
        )
        assert (shown.choices[0].message.content or "").endswith(f"\n\n{only}")
        assert shown.model_extra
        assert shown.model_extra["reading"]["implied"][0]["kind"] == "period"
        revoked = client.chat.completions.create(
            model="hybrid_use", messages=named, extra_body={"ignored": ["en enero de 2025"]}
        )
        assert only not in (revoked.choices[0].message.content or "")
        with pytest.raises(openai.NotFoundError) as raised:
            client.chat.completions.create(model="gpt-9", messages=asked)
        assert isinstance(raised.value.body, dict)
        assert raised.value.body["type"] == "invalid_request_error"
        assert "gpt-9" in raised.value.body["message"]
        assert client.models.retrieve("hybrid_use").id == "hybrid_use"
        vectors = client.embeddings.create(model="use_multilingual", input=[COST, QUESTION]).data
        assert [len(each.embedding) for each in vectors] == [512, 512]
        with client.chat.completions.create(
            model="rag", messages=asked, stream=True, stream_options={"include_usage": True}
        ) as stream:
            *_before, last = stream
        assert last.usage
        assert last.choices == []
        long: Any = [{"role": "user", "content": f"{'Bla. ' * 1_000}{QUESTION}"}]
        found = client.chat.completions.create(model="fulltext", messages=long)
        assert COST in (found.choices[0].message.content or "")


def unknown_metrics(numbers: str) -> set[str]:
    """The metrics of the dashboard and of the alerts that are not among the numbers."""
    folder = ROOT / "deploy" / "monitoring"
    named = {
        name
        for path in folder.iterdir()
        for name in re.findall(r"\brag_[a-z0-9_]+", path.read_text("utf-8"))
    }
    assert len(named) > 6
    families = dict(re.findall(r"^# TYPE (\w+) (\w+)$", numbers, re.MULTILINE))
    known = families.keys() | {
        f"{name}_bucket" for name, kind in families.items() if kind == "histogram"
    }
    return named - known


def test_health_numbers_and_documentation(api: ApiServer) -> None:
    assert api.client.get("/healthz").json() == {"status": "ok"}
    assert "not_warm" not in api.log.read_text("utf-8")
    api.client.post("/v1/retrieve", json=SEARCH)
    numbers = api.client.get("/metrics").text
    assert 'rag_http_requests_total{method="POST",route="/v1/retrieve",status="200"}' in numbers
    assert 'rag_stage_seconds_bucket{le="0.01",stage="search"}' in numbers
    schema = api.client.get("/openapi.json").json()
    assert "422" not in json.dumps(schema)
    assert schema["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert "security" not in schema["paths"]["/healthz"]["get"]
    assert {"key": []} in schema["paths"]["/v1/retrieve"]["post"]["security"]
    alias = schema["paths"]["/api/golden-dataset/{golden_id}"]["patch"]
    assert alias["tags"] == ["aliases"]
    assert alias["summary"] == "As /v1/golden-dataset/{golden_id}"
    assert schema["paths"]["/api/v1/query"]["post"]["tags"] == ["search"]
    assert unknown_metrics(numbers) == set()
    page = api.client.get("/docs").text
    assert "/v1/retrieve" in page
    assert "//cdn" not in page


def test_the_schema_says_what_the_api_does(api: ApiServer) -> None:
    """Every operation, as schemathesis reads its schema; `make api-cases` asks thousands of times.

    What is left out: whether every body that fits the schema is accepted. A question about a note
    that does not exist fits, and is refused.
    """
    options = ("--phases", "fuzzing", "--max-examples", "5", "--seed", "1", "--no-color")
    busy = ("--suppress-health-check", "too_slow")  # of a machine with other work
    left_out = ("--exclude-checks", "positive_data_acceptance")
    schemathesis = Path(sys.executable).with_name("schemathesis")
    done = subprocess.run(
        [schemathesis, "run", f"{api.url}/openapi.json", *options, *busy, *left_out],
        capture_output=True,
        text=True,
        check=False,
        cwd=api.log.parent,
    )
    assert done.returncode == 0, done.stdout[-5_000:]
    paths = api.client.get("/openapi.json").json()["paths"]
    assert f"Tested: {sum(map(len, paths.values()))}\n" in done.stdout


def test_a_server_serves_as_its_settings_say(url: str, tmp_path: Path) -> None:
    """How the simple query searches, and what is logged."""
    settings = {"QUERY_MODE": "hybrid", "QUERY_TOPK_DEFAULT": "1", "LOG_LEVEL": "debug"}
    origin = "https://pagina.example"
    with serving(tmp_path, url, **settings, API_CORS_ORIGINS=origin) as own:
        preflight = {"origin": origin, "access-control-request-method": "POST"}
        allowed = own.client.options("/v1/answers", headers=preflight)
        assert allowed.headers["access-control-allow-origin"] == origin
        found = own.client.post(
            "/api/v1/query",
            json={"query": QUESTION, "tags": ["coche"]},
        ).json()
        assert len(found["results"]) == 1
        other = SEARCH | {"query": "¿Y la gata?"}
        own.client.post("/v1/retrieve", json=other)
        assert own.stop() == 0
        log = own.log.read_text("utf-8")
    (record,) = (
        line for line in log.splitlines() if "retrieval_results" in line and QUESTION in line
    )
    for shown in ("coche", "scores"):
        assert shown in record


def test_without_keys_only_this_machine_by_its_own_name_is_answered(api: ApiServer) -> None:
    """A web page that lets its name lead here does not get in."""
    response = api.client.get("/v1/models", headers={"host": "pagina.example"})
    problem(response, HTTPStatus.UNAUTHORIZED)


@pytest.mark.parametrize("after_s", [0, 0.4, 0.8])
def test_it_stops_cleanly_while_its_models_load(url: str, tmp_path: Path, after_s: float) -> None:
    """A thread that is killed while OpenVINO compiles a model would abort the process."""
    with starting(tmp_path, url) as api:
        api.wait_until("/healthz")
        time.sleep(after_s)
        assert api.stop() == 0, api.log.read_text("utf-8")


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_keys_stand_for_a_tenant_and_a_role(url: str, tmp_path: Path) -> None:
    """Also: overload, and SIGTERM with a request in flight."""
    with Database(url) as database, Database(url, tenant="vecina") as other:
        keys = {role: Keys(database).create("prueba", role) for role in ApiRole}
        foreign, _ = Keys(other).create("ajena", ApiRole.READER)
        try:
            limits = {"API_THREADS": "1", "API_QUEUE": "1"}
            with serving(tmp_path, url, **limits) as api:
                _check_keys(api, {role: key for role, (key, __) in keys.items()}, foreign)
                _check_revoking(api, Keys(database), *keys[ApiRole.READER])
                _check_overload(api, keys[ApiRole.WRITER][0])
        finally:
            with database.transaction() as connection:
                connection.execute("DELETE FROM api_keys")


def _check_keys(api: ApiServer, keys: dict[ApiRole, str], foreign: str) -> None:
    client, owner = api.client, keys[ApiRole.OWNER]
    body = {"query": QUESTION, "configuration": "fulltext"}
    problem(client.post("/v1/retrieve", json=body), HTTPStatus.UNAUTHORIZED)
    for wrong in ("x", f"{owner}x", "rag_aa_bb", owner[:-1]):
        response = client.post("/v1/retrieve", json=body, headers=bearer(wrong))
        problem(response, HTTPStatus.UNAUTHORIZED)
    theirs = client.post("/v1/retrieve", json=body, headers=bearer(foreign)).json()
    named = [(result["title"], result["externalId"]) for result in theirs["results"]]
    assert named == [("Ajena", "ajena")]
    ours = client.post("/v1/retrieve", json=body, headers=bearer(owner)).json()
    assert "Ajena" not in {result["title"] for result in ours["results"]}
    reader = bearer(keys[ApiRole.READER])
    problem(client.post("/v1/golden-dataset", json={}, headers=reader), HTTPStatus.FORBIDDEN)
    operator = bearer(keys[ApiRole.OPERATOR])
    problem(client.get("/metrics", headers=bearer(owner)), HTTPStatus.FORBIDDEN)
    assert client.get("/metrics", headers=operator).status_code == HTTPStatus.OK
    problem(client.post("/v1/retrieve", json=body, headers=operator), HTTPStatus.FORBIDDEN)


def _check_revoking(api: ApiServer, keys: Keys, key: str, stored: Any) -> None:
    headers = bearer(key)
    assert api.client.get("/v1/models", headers=headers).status_code == HTTPStatus.OK
    keys.revoke(stored.key_id)
    wait_until(
        lambda: api.client.get("/v1/models", headers=headers).status_code == HTTPStatus.UNAUTHORIZED
    )


def _check_overload(api: ApiServer, key: str) -> None:
    """One works, one waits: of many at once the others are refused, and SIGTERM loses none."""
    body = {"query": QUESTION, "configuration": "hybrid_use"}
    ready = threading.Barrier(RECEIVED_LATE)

    def ask(number: int) -> httpx.Response:
        with httpx.Client(base_url=api.url, timeout=60) as client:
            ready.wait()
            question = body | {"query": f"{QUESTION} {number}"}
            return client.post("/v1/retrieve", json=question, headers=bearer(key))

    with ThreadPoolExecutor(RECEIVED_LATE) as threads:
        answers = list(threads.map(ask, range(RECEIVED_LATE)))
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(HTTPStatus.OK) >= 1
    assert set(statuses) <= {HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE}
    assert all(a.headers["retry-after"] for a in answers if a.status_code != HTTPStatus.OK)
    assert HTTPStatus.SERVICE_UNAVAILABLE in statuses
    assert api.stop() == 0
