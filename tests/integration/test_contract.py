"""The HTTP contract that was specified: each request of it, and the fields of its answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from rag_resources.api.app import build_app
from rag_resources.api.routes import evaluations
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.indexing.embed import embed_chunks
from rag_resources.providers.registry import build_embedder
from rag_resources.settings import load_settings
from rag_resources.store.models import register_model
from rag_resources.store.notes import note_id, upsert_notes
from tests.api_server import ApiServer, api_login, serving
from tests.corpus import ALWAYS
from tests.integration.test_api import COST, QUESTION, problem, url  # noqa: F401 - a fixture
from tests.waiting import wait_until

NOTE = str(note_id("default", "notes", "furgo"))
FULLTEXT: dict[str, Any] = {"query": QUESTION, "config": {"strategy": "fulltext"}}
QUERY = {"query": QUESTION, "similarityThreshold": 0.0}


@pytest.fixture(scope="module")
def api(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:  # noqa: F811
    with Database(url) as database:
        embedder = build_embedder("e5_small")
        with database.transaction() as connection:
            register_model(
                connection,
                embedder.info,
                set(VectorKind),
            )
        embed_chunks(database, embedder, ALWAYS)
    folder: Path = tmp_path_factory.mktemp("contract")
    with serving(folder, url, FILES_URL=(folder / "files").as_uri()) as running:
        yield running


def test_the_example_of_the_specification(api: ApiServer) -> None:
    body = {
        "query": "¿Por qué me siento ansioso cuando tengo conflictos en el trabajo?",
        "config": {"strategy": "hybrid+rerank", "topK": {"final": 5}},
    }
    answer = api.client.post("/api/retrieve", json=body)
    assert answer.status_code == HTTPStatus.OK, answer.text
    metadata = answer.json()["metadata"]
    assert metadata["query"] == body["query"]
    assert metadata["strategy"] == "hybrid+rerank"
    assert (
        metadata["transformedQuery"] | {"intent": "causal", "subQueries": []}
        == (metadata["transformedQuery"])
    )
    assert metadata["transformedQuery"]["hydeAnswer"] is None
    assert metadata["latencyMs"] > 0
    assert {"queryTransformation", "retrieval", "reranking", "contextExpansion"} <= (
        metadata["stages"].keys()
    )


@pytest.mark.parametrize(
    ("changes", "method"),
    [
        ({"strategy": "semantic"}, "semantic"),
        ({"strategy": "fulltext"}, "fulltext"),
        ({"config": {"strategy": "hybrid"}}, "hybrid"),
        ({"config": {"hybridSearch": {"enabled": False}}}, "semantic"),
        (
            {
                "config": {
                    "topK": {"retrieval": 20, "reranking": 10, "final": 5},
                    "hybridSearch": {
                        "enabled": True,
                        "rrfK": 60,
                        "semanticWeight": 0.7,
                        "fulltextWeight": 0.3,
                    },
                    "reranking": {"enabled": False},
                    "queryTransformation": {"enabled": True, "enableHyDE": False},
                }
            },
            "hybrid",
        ),
        ({"config": {"top_k": {"final": 5}, "hybrid_search": {"rrf_k": 9}}}, "hybrid"),
    ],
)
def test_retrieve_takes_every_field(api: ApiServer, changes: dict[str, Any], method: str) -> None:
    answer = api.client.post("/api/retrieve", json={"query": QUESTION, "topK": 3} | changes)
    assert answer.status_code == HTTPStatus.OK, answer.text
    first = answer.json()["results"][0]
    assert first["noteId"] == NOTE
    assert first["chunkId"]
    assert 0 < first["score"] <= 1
    bounds = first["metadata"]["matchedChunkBounds"]
    assert first["expandedContent"][bounds["start"] : bounds["end"]] == first["content"] == COST
    assert first["metadata"]["chunkIndex"] == 0
    assert first["metadata"]["retrievalMethod"] == method
    assert len(answer.json()["results"]) <= 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": QUESTION, "topK": 51}, "topK"),
        ({"query": QUESTION, "strategy": "magic"}, "strategy"),
        ({"query": QUESTION, "config": {"topK": {"final": 0}}}, "config.topK.final"),
        (
            {"query": QUESTION, "config": {"hybridSearch": {"semanticWeight": 1.5}}},
            "config.hybridSearch.semanticWeight",
        ),
    ],
)
def test_what_is_wrong_is_named(api: ApiServer, body: dict[str, Any], field: str) -> None:
    told = problem(api.client.post("/api/retrieve", json=body), HTTPStatus.BAD_REQUEST)
    assert told["error"] == "Parámetros inválidos"
    assert any(line.startswith(f"{field}:") for line in told["details"])


GOLDEN = {
    "query": "¿Cuánto pide el taller por la furgoneta?",
    "relevantNoteIds": [NOTE],
    "expectedAnswer": "415 euros",
    "category": "factual",
    "difficulty": 2,
}


def test_golden_questions_and_evaluations(api: ApiServer) -> None:
    """In one: an evaluation needs a question, and the metrics an evaluation."""
    path = "/api/golden-dataset"
    added = api.client.post(path, json=GOLDEN)
    assert added.status_code == HTTPStatus.CREATED
    assert added.json() | GOLDEN == added.json()
    assert [each["id"] for each in api.client.get(path).json()["entries"]] == [added.json()["id"]]
    bare = GOLDEN | {"query": GOLDEN["query"].strip("¿?") + "."}
    again = api.client.post(path, json=bare)
    assert added.json()["id"] in problem(again, HTTPStatus.BAD_REQUEST)["details"][0]
    exported = api.client.post(f"{path}/export").json()
    assert api.client.post(f"{path}/import", json=exported).json()["total"] == 1

    evaluated = api.client.post(
        "/api/retrieve/evaluate", json=FULLTEXT | {"category": "factual"} | {}
    )
    assert problem(evaluated, HTTPStatus.BAD_REQUEST)["details"][0].startswith("query:")
    evaluated = api.client.post(
        "/api/retrieve/evaluate", json={"config": FULLTEXT["config"], "category": "factual"}
    )
    assert evaluated.status_code == HTTPStatus.OK, evaluated.text
    made = evaluated.json()
    assert (
        made["metrics"] | {"hitRateK1": 1.0, "hitRateK3": 1.0, "hitRateK5": 1.0}
        == (made["metrics"])
    )
    assert (
        made["metrics"] | {"hitRateK10": 1.0, "mrr": 1.0, "faithfulness": None} == (made["metrics"])
    )
    assert made["metrics"]["answerRelevance"] is None
    assert 0 < made["metrics"]["latencyP50"] <= made["metrics"]["latencyP95"]
    assert made["metrics"]["latencyP95"] <= made["metrics"]["latencyP99"]
    assert (made["totalQueries"], made["timestamp"][:2]) == (1, "20")
    none = api.client.post("/api/retrieve/evaluate", json={"category": "causal"})
    assert problem(none, HTTPStatus.BAD_REQUEST)["details"][0].startswith("category:")

    listed = api.client.get(
        "/api/retrieve/metrics", params={"limit": 10, "configHash": made["configHash"]}
    ).json()
    (row,) = listed["evaluations"]
    assert (row["id"], row["configHash"]) == (made["evaluationId"], made["configHash"])
    assert row["config"]["strategy"] == "fulltext"
    assert row["metrics"] == made["metrics"]
    assert row["timestamp"] == made["timestamp"]
    shown = api.client.get(f"/v1/evaluations/{made['evaluationId']}").json()
    assert shown == row
    too_many = api.client.get("/api/retrieve/metrics", params={"limit": 51})
    problem(too_many, HTTPStatus.BAD_REQUEST)

    assert api.client.delete(f"{path}/{added.json()['id']}").status_code == HTTPStatus.NO_CONTENT


@contextmanager
def near(url: str, **settings: str) -> Iterator[TestClient]:  # noqa: F811
    """The API in this process, asked from this machine."""
    app = build_app(load_settings(database_url=api_login(url), **settings))
    with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 1)) as client:
        yield client


def test_an_evaluation_that_takes_longer_is_asked_for_again(
    url: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(evaluations, "AT_ONCE_S", 0.0)
    with near(url) as client:
        golden = client.post("/api/golden-dataset", json=GOLDEN).json()
        asked = client.post("/api/retrieve/evaluate", json={"config": FULLTEXT["config"]})
        assert asked.status_code == HTTPStatus.ACCEPTED, asked.text
        address = asked.headers["location"]
        assert address.endswith(asked.json()["id"])
        assert asked.json()["state"] == "running"
        wait_until(lambda: client.get(address).json()["state"] != "running", 60)
        done = client.get(address).json()
        assert (done["state"], done["evaluation"]["metrics"]["hitRateK1"]) == ("done", 1.0)
        assert client.delete(f"/api/golden-dataset/{golden['id']}").is_success


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_the_query_service_searches_as_it_is_set(
    url: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = {"query_topk_default": "1", "query_topk_max": "2"}
    with near(url, query_mode=mode, **sizes) as client:
        wait_until(lambda: client.get("/readyz").is_success, 60)
        with capture_logs() as records:
            assert len(client.post("/api/v1/query", json=QUERY).json()["results"]) == 1
            client.post("/api/retrieve", json={"query": QUESTION, "strategy": mode})
        own, named = (each["config_hash"] for each in records if each["event"] == "retrieval")
        assert own == named
        many = client.post("/api/v1/query", json=QUERY | {"topK": 3})
        assert problem(many, HTTPStatus.BAD_REQUEST)["details"][0].startswith("topK")


def test_the_deadline_passes(api: ApiServer, url: str) -> None:  # noqa: F811
    assert api.client.post("/api/retrieve", json=FULLTEXT).status_code == HTTPStatus.OK
    late = FULLTEXT | {"query": "¿Cuánto pidió el taller?"}
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE chunks, notes")
        refused = api.client.post("/api/retrieve", json=late)
    told = problem(refused, HTTPStatus.GATEWAY_TIMEOUT)
    assert told["error"] == "Tiempo de espera agotado"


@pytest.mark.parametrize("path", ["/api/retrieve", "/api/v1/query"])
def test_the_store_fails(api: ApiServer, url: str, path: str) -> None:  # noqa: F811
    question = {"query": f"¿Qué taller es este de {path}?"}
    rename = "ALTER TABLE {} RENAME TO {}".format
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(rename("chunks", "gone"))
        try:
            failed = api.client.post(path, json=question)
        finally:
            other.execute(rename("gone", "chunks"))
    told = problem(failed, HTTPStatus.INTERNAL_SERVER_ERROR)
    assert told["error"] == "Error interno del servidor"
    (record,) = (
        line
        for line in api.log.read_text("utf-8").splitlines()
        if told["requestId"] in line and "[error" in line
    )
    assert question["query"] not in record


def test_the_query_service(api: ApiServer) -> None:
    path = "/api/v1/query"
    found = api.client.post(path, json=QUERY | {"topK": 3, "tags": ["coche"]}).json()
    first = found["results"][0]
    assert first["documentId"] == NOTE
    assert (first["chunkIndex"], first["snippet"]) == (0, COST)
    assert first["source"] == "notes"
    assert "coche" in first["tags"]
    scores = [each["score"] for each in found["results"]]
    assert scores == sorted(scores, reverse=True)
    fitting = {"similarityThreshold": first["score"]}
    above = api.client.post(path, json=QUERY | {"topK": 3, "tags": ["coche"]} | fitting).json()
    assert [each["score"] for each in above["results"]] == [
        score for score in scores if score >= first["score"]
    ]
    own = api.client.post(path, json=QUERY | {"documentId": NOTE}).json()["results"]
    assert {each["documentId"] for each in own} == {NOTE}
    for nothing in ({"source": "ninguna"}, {"similarityThreshold": 1.0}):
        answer = api.client.post(path, json=QUERY | nothing)
        assert answer.status_code == HTTPStatus.OK
        assert answer.json()["results"] == []
        assert answer.json()["message"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"query": " "}, ""),
        ({"query": "x" * 20_000}, "query"),
        ({"topK": -1}, "topK"),
        ({"topK": 11}, "topK"),
        ({"tags": []}, "tags"),
        ({"source": "x" * 1_000}, "source"),
        ({"similarityThreshold": 1.1}, "similarityThreshold"),
    ],
)
def test_the_query_service_refuses(api: ApiServer, changes: dict[str, Any], field: str) -> None:
    refused = api.client.post("/api/v1/query", json=QUERY | changes)
    details = problem(refused, HTTPStatus.BAD_REQUEST)["details"]
    assert details[0].startswith(field)


def test_a_document_is_taken_in(api: ApiServer) -> None:
    answer = api.client.post("/api/v1/documents/ingest", files={"file": ("a.md", b"# Caldera\n")})
    assert answer.status_code == HTTPStatus.ACCEPTED
    assert answer.json()["id"]
    assert answer.json()["stages"]


def test_metadata_of_a_note_change_and_it_is_deleted_and_restored(
    api: ApiServer,
    url: str,  # noqa: F811
) -> None:
    """What a person changed, its source does not change back."""
    path = f"/v1/notes/{NOTE}"
    before = api.client.get(path).json()
    edits = {"estado": "pagado", "expiresAt": "2999-01-01", "nada": None}
    edited = api.client.patch(path, json={"metadata": edits})
    assert edited.status_code == HTTPStatus.OK, edited.text
    kept = {**before["metadata"], "estado": "pagado", "expiresAt": "2999-01-01T00:00:00+00:00"}
    assert edited.json()["metadata"] == kept
    with Database(url) as database, database.transaction() as connection:
        record = NoteRecord(
            external_id="furgo",
            content=before["content"],
            created_at=datetime.fromisoformat(before["createdAt"]),
            title=before["title"],
            metadata={"de": "su fuente", "estado": "pendiente"},
        )
        upsert_notes(connection, [record], tenant="default", source="notes")
    assert api.client.get(path).json()["metadata"] == {
        "de": "su fuente",
        "estado": "pagado",
        "expiresAt": "2999-01-01T00:00:00+00:00",
    }
    assert api.client.delete(path).status_code == HTTPStatus.NO_CONTENT
    assert api.client.delete(path).status_code == HTTPStatus.NOT_FOUND
    restored = api.client.post(f"{path}/restore")
    assert restored.status_code == HTTPStatus.OK
    assert restored.json()["content"] == before["content"]
    assert restored.json()["metadata"]["estado"] == "pagado"
    assert api.client.post(f"/v1/notes/{uuid4()}/restore").status_code == HTTPStatus.NOT_FOUND
