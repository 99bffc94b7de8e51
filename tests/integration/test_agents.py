"""The tools of `/mcp`, asked by the protocol's own client, and tokens of a login service."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from mcp.client import Client
from mcp_types import CallToolResult, TextContent

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.indexing.chunk import chunk_window
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.notes import note_id
from tests.api_server import ApiServer, serving
from tests.corpus import ALWAYS
from tests.databases import cloned

DAY = datetime(2025, 1, 12, tzinfo=UTC)
COST = "El taller pide 415 euros por arreglar la dirección de la furgoneta."
THEIRS = "El taller ajeno pide 999 euros."
ISSUER, AUDIENCE = "https://acceso.example", "brain-sync-rag"


class Issuer:
    """A login service that publishes its keys, as a context manager."""

    def __init__(self) -> None:
        self.private = ec.generate_private_key(ec.SECP256R1())
        self.key_id = "uno"
        self.asked = 0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                public = json.loads(ECAlgorithm.to_jwk(issuer.private.public_key()))
                keys = {"keys": [{**public, "kid": issuer.key_id, "alg": "ES256", "use": "sig"}]}
                body = json.dumps(keys).encode()
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> "Issuer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def token(
        self, *, private: Any = None, headers: dict[str, Any] | None = None, **claims: Any
    ) -> str:
        """A token of a reader, with other claims."""
        whole = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "ana",
            "exp": time.time() + 600,
            "tenant": "default",
            "role": "reader",
        }
        whole = {name: value for name, value in (whole | claims).items() if value is not None}
        return jwt.encode(
            whole, private or self.private, "ES256", headers={"kid": self.key_id} | (headers or {})
        )


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


@pytest.fixture(scope="module")
def api(
    server: EmbeddedServer,
    template_database: str,
    issuer: Issuer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ApiServer]:
    """A server that takes tokens, over a note of each of two tenants."""
    folder = tmp_path_factory.mktemp("agents")
    with cloned(server, template_database) as (name,):
        url = server.dsn(name)
        for tenant, external_id, title, text in (
            ("default", "viajes/furgo.md", "", COST),
            ("vecina", "furgo", "La furgoneta", THEIRS),
        ):
            with Database(url, tenant=tenant) as database:
                record = NoteRecord(external_id, title, text, DAY, tags=("coche",))
                ingest(database, [record], tenant=tenant, source="notes")
                chunk_window(database, ALWAYS, ChunkingConfig())
                with database.transaction() as transaction:
                    refresh_statistics(transaction)
        variables = {
            "JWT_JWKS_URL": issuer.url,
            "JWT_ISSUER": ISSUER,
            "JWT_AUDIENCE": AUDIENCE,
            "JWT_ROLE_CLAIM": "role",
        }
        with serving(folder, url, **variables) as running:
            yield running


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_a_token_stands_for_its_tenant_and_role(api: ApiServer, issuer: Issuer) -> None:
    me = api.client.get("/v1/me", headers=bearer(issuer.token())).json()
    assert (me["tenant"], me["role"]) == ("default", "reader")
    claims = {"tenant": "vecina", "role": ["otra", "writer", "reader"]}
    me = api.client.get("/v1/me", headers=bearer(issuer.token(**claims))).json()
    assert (me["tenant"], me["role"]) == ("vecina", "writer")
    assert api.client.get("/v1/me").status_code == HTTPStatus.UNAUTHORIZED
    assert issuer.asked == 1


def test_tokens_that_are_not_meant_for_us_are_refused(api: ApiServer, issuer: Issuer) -> None:
    """Each differs from a good one in one thing."""
    other = ec.generate_private_key(ec.SECP256R1())
    good = issuer.token()
    head, payload, signature = good.split(".")
    wrong = {
        "expired": issuer.token(exp=time.time() - 60),
        "no expiry": issuer.token(exp=None),
        "other audience": issuer.token(aud="otra"),
        "other issuer": issuer.token(iss="https://otro.example"),
        "not yet": issuer.token(nbf=time.time() + 600),
        "no tenant": issuer.token(tenant=None),
        "tenant is no text": issuer.token(tenant=["default"]),
        "unknown role": issuer.token(role="root"),
        "other signer": issuer.token(private=other),
        "unknown key": issuer.token(headers={"kid": "dos"}),
        "no signature": f"{head}.{payload}.",
        "other payload": f"{head}.{issuer.token(tenant='vecina').split('.')[1]}.{signature}",
        "no algorithm": jwt.encode({"tenant": "default"}, "", "none"),
        "public key as secret": jwt.encode({"tenant": "default"}, "x" * 32, "HS256"),
    }
    accepted = [
        name
        for name, token in wrong.items()
        if api.client.get("/v1/me", headers=bearer(token)).status_code != HTTPStatus.UNAUTHORIZED
    ]
    assert accepted == []
    assert issuer.asked == 1, "unknown keys are not asked for again and again"


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_agents_search_ask_and_read(api: ApiServer, issuer: Issuer) -> None:
    """With the official client; another tenant's note is neither found nor read.

    A note without a title is called by its name in its source.
    """
    own = note_id("default", "notes", "viajes/furgo.md")
    foreign = note_id("vecina", "notes", "furgo")

    async def talk() -> None:
        from mcp.client.streamable_http import streamable_http_client

        headers = bearer(issuer.token())
        async with (
            httpx.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{api.url}/mcp", http_client=http)) as client,
        ):
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["search_notes", "ask_notes", "get_note"]
            question = {"query": "¿cuánto pide el taller?", "tags": ["coche"]}
            found = await client.call_tool("search_notes", question | {"limit": 1})
            assert not found.is_error
            assert text_of(found).startswith("[1] viajes/furgo.md (2025-01-12; note ")
            assert COST in text_of(found)
            assert "999" not in text_of(found)
            assert found.structured_content["results"][0]["noteId"] == str(own)
            answer = await client.call_tool("ask_notes", question)
            assert f"{COST} [1]" in text_of(answer)
            assert "[1] viajes/furgo.md (2025-01-12; " in text_of(answer)
            cited = answer.structured_content["sentences"][0]["citations"][0]
            read = await client.call_tool(
                "get_note", {"id": cited["noteId"], "start": cited["start"], "end": cited["end"]}
            )
            assert read.structured_content["content"] == COST
            assert text_of(read).startswith("viajes/furgo.md (2025-01-12)")
            gone = await client.call_tool("get_note", {"id": str(foreign)})
            assert gone.is_error
            assert text_of(gone) == _(
                "There is no note {note_id}, or this key does not show it."
            ).format(note_id=foreign)
            wrong = await client.call_tool("search_notes", {"query": "x", "limitt": 1})
            assert wrong.is_error
            assert "limitt" in text_of(wrong)

    asyncio.run(talk())
    chat = {"model": "rag", "messages": [{"role": "user", "content": "¿cuánto pide el taller?"}]}
    said = api.client.post("/v1/chat/completions", json=chat, headers=bearer(issuer.token())).json()
    text = said["choices"][0]["message"]["content"]
    assert text.splitlines()[2] == "[1] viajes/furgo.md, 2025-01-12"
    assert api.client.post("/mcp", json={}).status_code == HTTPStatus.UNAUTHORIZED
