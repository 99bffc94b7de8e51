"""The tools of `/mcp`, asked by the protocol's own client."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest
from mcp.client import Client
from mcp_types import CallToolResult, TextContent

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.indexing.chunk import chunk_window
from rag_resources.ingestion.ingest import ingest
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.notes import note_id
from tests.api_server import ApiServer, serving
from tests.corpus import ALWAYS
from tests.databases import cloned

DAY = datetime(2025, 1, 12, tzinfo=UTC)
COST = "El taller pide 415 euros por arreglar la dirección de la furgoneta."
THEIRS = "El taller ajeno pide 999 euros."


@pytest.fixture(scope="module")
def api(
    server: EmbeddedServer,
    template_database: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ApiServer]:
    """A server over a note of each of two tenants."""
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
        with serving(folder, url) as running:
            yield running


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_agents_search_ask_and_read(api: ApiServer) -> None:
    """With the official client; another tenant's note is neither found nor read.

    A note without a title is called by its name in its source.
    """
    own = note_id("default", "notes", "viajes/furgo.md")
    foreign = note_id("vecina", "notes", "furgo")

    async def talk() -> None:
        from mcp.client.streamable_http import streamable_http_client

        async with (
            httpx.AsyncClient(timeout=60) as http,
            Client(streamable_http_client(f"{api.url}/mcp", http_client=http)) as client,
        ):
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools] == ["search_notes", "ask_notes", "get_note"]
            question = {"query": "¿cuánto pide el taller?", "tags": "coche", "file": None}
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
            assert str(foreign) in text_of(gone)
            wrong = await client.call_tool("search_notes", {"query": "x", "limitt": 1})
            assert wrong.is_error
            assert "limitt" in text_of(wrong)
            assert "createdFrom" in text_of(wrong)

    asyncio.run(talk())
    chat = {"model": "rag", "messages": [{"role": "user", "content": "¿cuánto pide el taller?"}]}
    said = api.client.post("/v1/chat/completions", json=chat).json()
    text = said["choices"][0]["message"]["content"]
    assert text.splitlines()[2] == "[1] viajes/furgo.md, 2025-01-12"
