"""Files uploaded over HTTP: kept, registered, read, shown, deleted; also without a database."""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag_resources.application import Application, open_application
from rag_resources.core.api_keys import ApiRole
from rag_resources.core.errors import ConflictError
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.documents.uploads import check_upload, register
from rag_resources.files import LocalFiles
from rag_resources.languages.messages import _
from rag_resources.settings import Settings, load_settings
from rag_resources.store.api_keys import Keys
from rag_resources.store.document_list import ALWAYS
from tests.api_server import ApiServer, serving, starting
from tests.databases import cloned
from tests.tcp_proxy import TcpProxy
from tests.waiting import wait_until

DOCUMENTS = "/v1/documents"
PLAN = b"El plan del barrio paga dos lineas de autobus.\n"
ACTA = b"Acta de la comunidad: se arregla el ascensor.\n"


@pytest.fixture(scope="module")
def url(server: EmbeddedServer, template_database: str) -> Iterator[str]:
    """URL of a database with keys of two tenants."""
    with cloned(server, template_database) as (name,):
        yield server.dsn(name)


@pytest.fixture(scope="module")
def keys(url: str) -> dict[str, str]:
    """Whole keys: a writer's and a reader's, and that of another tenant's writer."""
    made = {}
    for name, tenant, role in (
        ("writer", "default", ApiRole.WRITER),
        ("reader", "default", ApiRole.READER),
        ("foreign", "vecina", ApiRole.WRITER),
    ):
        with Database(url, tenant=tenant) as database:
            made[name], _ = Keys(database).create("prueba", role)
    return made


@pytest.fixture(scope="module")
def proxy(url: str) -> Iterator[TcpProxy]:
    """A proxy between the API and the database."""
    place = conninfo_to_dict(url)
    with TcpProxy(str(place["host"]), int(str(place["port"]))) as made:
        yield made
        made.heal()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the API keeps files."""
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="module")
def api(url: str, proxy: TcpProxy, keys: dict[str, str], folder: Path) -> Iterator[ApiServer]:
    """A server that reaches its database through the proxy."""
    assert keys
    through = make_conninfo(url, host="127.0.0.1", port=proxy.port)
    place = conninfo_to_dict(through)
    dsn = f"postgresql://{place['user']}:{place['password']}@127.0.0.1:{place['port']}/{place['dbname']}"
    with serving(
        folder,
        dsn,
        FILES_URL=(folder / "files").as_uri(),
        EXTRACTION__FILE_MB="1",
    ) as running:
        yield running


@pytest.fixture
def application(url: str, folder: Path) -> Iterator[Application]:
    """What a run of Dagster has, in the same place."""
    with open_application(settings_of(url, folder)) as opened:
        yield opened


def settings_of(url: str, folder: Path) -> Settings:
    files = (folder / "files").as_uri()
    return load_settings(rag_home=folder / "home", database_url=url, files_url=files)


def post(
    api: ApiServer, key: str, content: bytes, name: str = "plan.txt", **more: Any
) -> httpx.Response:
    """Upload a file."""
    headers = {"authorization": f"Bearer {key}"}
    if "idempotency_key" in more:
        headers["idempotency-key"] = more.pop("idempotency_key")
    path = more.pop("path", DOCUMENTS)
    return api.client.post(path, files={"file": (name, content)}, data=more, headers=headers)


def show(api: ApiServer, key: str, document_id: str) -> httpx.Response:
    """Ask for a document."""
    headers = {"authorization": f"Bearer {key}"}
    return api.client.get(f"{DOCUMENTS}/{document_id}", headers=headers)


def read(application: Application) -> None:
    """Do what a run of the job `ingest` does with documents."""
    application.documents.extract(ALWAYS)
    application.documents.apply(ALWAYS)


def test_an_upload_is_read_and_deleted(
    api: ApiServer, keys: dict[str, str], application: Application
) -> None:
    metadata = json.dumps({"barrio": "La Alameda", "año": 2026})
    answered = post(api, keys["writer"], PLAN, title="El plan", metadata=metadata)
    assert answered.status_code == HTTPStatus.ACCEPTED, answered.text
    row = answered.json()
    assert answered.headers["location"] == f"{DOCUMENTS}/{row['id']}"
    assert (row["title"], row["status"], row["mediaType"]) == ("El plan", "pending", "text/plain")
    assert row["stages"] == {
        "downloading": "done",
        "extracting": "waiting",
        "chunking": "waiting",
        "embedding": "waiting",
    }
    assert UUID(row["id"]) in application.documents.waiting_uploads()
    read(application)
    after = show(api, keys["reader"], row["id"]).json()
    assert after["status"] == "chunking"
    assert after["stages"]["extracting"] == "done"
    assert after["stages"]["chunking"] == "running"
    assert (after["pages"], after["notes"], after["failures"]) == (1, 1, [])
    assert after["metadata"] == {"barrio": "La Alameda", "año": 2026}
    headers = {"authorization": f"Bearer {keys['writer']}"}
    assert api.client.delete(f"{DOCUMENTS}/{row['id']}", headers=headers).status_code == 204
    assert show(api, keys["reader"], row["id"]).status_code == HTTPStatus.NOT_FOUND
    again = post(api, keys["writer"], PLAN)
    assert again.status_code == HTTPStatus.CONFLICT
    assert again.json()["error"].startswith("Se borró el ")
    assert row["address"] in again.json()["error"]
    assert all(key.partition("_")[2][:16] not in again.text for key in keys.values())
    lifted = {"json": {"address": row["address"]}, "headers": headers}
    assert api.client.post(f"{DOCUMENTS}/restore", **lifted).status_code == HTTPStatus.NO_CONTENT
    assert api.client.post(f"{DOCUMENTS}/restore", **lifted).status_code == HTTPStatus.NOT_FOUND
    assert post(api, keys["writer"], PLAN).status_code == HTTPStatus.ACCEPTED


def test_title_and_metadata_of_a_document_change(
    api: ApiServer, keys: dict[str, str], application: Application
) -> None:
    """By PATCH, and by the same file with another title; its notes are filtered by them."""
    content = b"Acta de la fuente del barrio.\n"
    described = {"title": "Fuente", "metadata": '{"barrio": "Centro", "año": 2026}'}
    path = f"{DOCUMENTS}/{post(api, keys['writer'], content, **described).json()['id']}"
    read(application)
    headers = {"authorization": f"Bearer {keys['writer']}"}
    body = {"title": "La fuente", "metadata": {"año": None, "barrio": "Norte"}}
    changed = api.client.patch(path, json=body, headers=headers)
    assert changed.status_code == HTTPStatus.OK, changed.text
    assert (changed.json()["title"], changed.json()["metadata"]) == (
        "La fuente",
        {"barrio": "Norte"},
    )
    assert post(api, keys["writer"], content).json()["title"] == "La fuente"
    again = post(api, keys["writer"], content, title="Otra", metadata='{"barrio": "Sur"}').json()
    assert (again["title"], again["metadata"]) == ("Otra", {"barrio": "Sur"})
    (note,) = application.notes.of_document(UUID(again["id"]))
    opened = application.notes.open(note)
    assert opened is not None
    assert opened.metadata["barrio"] == "Sur"
    by_note = api.client.patch(f"/v1/notes/{note}", json={"metadata": {}}, headers=headers)
    assert by_note.status_code == HTTPStatus.CONFLICT
    nested = api.client.patch(path, json={"metadata": {"a": {"b": 1}}}, headers=headers)
    assert nested.status_code == HTTPStatus.BAD_REQUEST


def test_a_repeated_request_changes_nothing(api: ApiServer, keys: dict[str, str]) -> None:
    first = post(api, keys["writer"], ACTA, "acta.txt", idempotency_key="a-1").json()
    again = post(api, keys["writer"], ACTA, "acta.txt", idempotency_key="a-1")
    assert again.status_code == HTTPStatus.ACCEPTED
    assert again.json()["id"] == first["id"]
    alias = post(api, keys["writer"], ACTA, "otra.txt", path="/api/v1/documents/ingest")
    assert alias.json()["id"] == first["id"]  # the same file is the same document
    other = post(api, keys["writer"], ACTA + b"Fin.\n", "acta.txt", idempotency_key="a-1")
    assert other.status_code == HTTPStatus.CONFLICT
    assert other.json()["error"] == _(
        "Another file was uploaded with this Idempotency-Key. Use a new key for each file."
    )
    renamed = post(api, keys["writer"], ACTA, "otra.txt", idempotency_key="a-1")
    assert renamed.status_code == HTTPStatus.CONFLICT
    headers = {"authorization": f"Bearer {keys['reader']}"}
    listed = api.client.get(DOCUMENTS, headers=headers, params={"limit": 1}).json()
    assert len(listed["documents"]) == 1 <= listed["total"]


def test_tenants_and_roles(api: ApiServer, keys: dict[str, str], application: Application) -> None:
    own = post(api, keys["foreign"], b"Solo de la vecina.\n", "suyo.txt", idempotency_key="a-1")
    assert own.status_code == HTTPStatus.ACCEPTED, own.text  # keys of requests are each tenant's
    document_id = own.json()["id"]
    assert show(api, keys["reader"], document_id).status_code == HTTPStatus.NOT_FOUND
    assert post(api, keys["reader"], PLAN).status_code == HTTPStatus.FORBIDDEN
    read(application)  # runs read the documents of all tenants
    assert show(api, keys["foreign"], document_id).json()["status"] == "chunking"


@pytest.mark.parametrize(
    ("content", "name", "more", "status"),
    [
        (b"\x00\x01\x02", "datos.bin", {}, HTTPStatus.BAD_REQUEST),
        (b"%PDF-1.4", "plan.txt", {"metadata": "[1]"}, HTTPStatus.BAD_REQUEST),
        (PLAN, "plan.txt", {"metadata": "{"}, HTTPStatus.BAD_REQUEST),
        (PLAN, "plan.txt", {"metadata": '{"a": {"b": 1}}'}, HTTPStatus.BAD_REQUEST),
        (b"x" * 1_100_000, "largo.txt", {}, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (b"x" * 1_500_000, "largo.txt", {}, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ],
)
def test_what_cannot_be_used_is_refused_at_once(
    api: ApiServer,
    keys: dict[str, str],
    content: bytes,
    name: str,
    more: dict[str, str],
    status: HTTPStatus,
) -> None:
    answered = post(api, keys["writer"], content, name, **more)
    assert answered.status_code == status, answered.text
    assert answered.headers["content-type"] == "application/problem+json"


def test_names_of_files_lead_nowhere(api: ApiServer, keys: dict[str, str], folder: Path) -> None:
    row = post(api, keys["writer"], b"Fuera.\n", "../../../fuera.txt").json()
    assert row["address"].endswith("/fuera.txt")
    assert row["title"] == "fuera"
    assert not list(folder.parent.glob("fuera.txt"))


def test_without_a_database_an_upload_is_refused_and_leaves_nothing(
    api: ApiServer, keys: dict[str, str], proxy: TcpProxy, folder: Path
) -> None:
    before = sorted(folder.rglob("*"))
    proxy.refuse()
    proxy.cut()
    try:
        wait_until(lambda: api.client.get("/readyz").status_code != HTTPStatus.OK)
        begun = time.monotonic()
        answered = post(api, keys["writer"], b"Llega con la base caida.\n", "tarde.txt")
        assert time.monotonic() - begun < 1, "at once, without trying"
        assert answered.status_code == HTTPStatus.SERVICE_UNAVAILABLE, answered.text
        assert answered.json()["error"] == _(
            "The database is not available. Please try again later."
        )
        assert answered.headers["retry-after"]
    finally:
        proxy.heal()
    wait_until(lambda: api.client.get("/readyz").status_code == HTTPStatus.OK)
    assert sorted(folder.rglob("*")) == before


def test_a_refused_upload_leaves_no_file(database: Database, tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    first, second = (
        check_upload(content, "plan.txt", tenant="default", idempotency_key="k")
        for content in (PLAN, ACTA)
    )
    register(database, files, first, PLAN)
    with pytest.raises(ConflictError):
        register(database, files, second, ACTA)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [
        first.file_sha256.hex()
    ]


def test_ten_large_uploads_at_once_take_little_memory(
    url: str, keys: dict[str, str], tmp_path: Path
) -> None:
    """A few files are in memory at once, whatever the number of requests: not 850 MB."""

    def peak(of: int) -> int:
        status = Path(f"/proc/{of}/status").read_text("utf-8")
        (kilobytes,) = re.findall(r"VmHWM:\s+(\d+)", status)
        return int(kilobytes) // 1024

    with starting(tmp_path, url, FILES_URL=(tmp_path / "files").as_uri()) as own:
        own.wait_until("/readyz")
        before = peak(own.process.pid)

        def send(number: int) -> int:
            content = f"{number} ".encode() + b"palabra " * (85 * 1024**2 // 8)
            return post(own, keys["writer"], content, f"{number}.txt").status_code

        with ThreadPoolExecutor(10) as threads:
            assert set(threads.map(send, range(10))) == {HTTPStatus.ACCEPTED}
        assert peak(own.process.pid) - before < 500
