"""What must not get into the API, nor out of it, and what it says then."""

from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

from tests.api_server import ApiServer, serving
from tests.integration.test_api import problem, url  # noqa: F401 - a fixture

JSON = {"content-type": "application/json"}
BAD = HTTPStatus.BAD_REQUEST


@pytest.fixture(scope="module")
def api(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:  # noqa: F811
    folder: Path = tmp_path_factory.mktemp("attacks")
    with serving(folder, url, FILES_URL=(folder / "files").as_uri()) as running:
        yield running


@pytest.mark.parametrize("character", ["\\u0000", "\\ud800"])
@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/retrieve", '{"query": "a%s"}', "query"),
        ("/v1/retrieve", '{"query": "a", "filters": {"metadata": {"a%s": "b"}}}', "filters"),
        ("/v1/retrieve", '{"query": "a", "config": {"b": ["%s"]}}', "config"),
        ("/v1/feedback", '{"answerId": "x", "comment": "%s", "verdict": "up"}', "comment"),
        ("/v1/golden-dataset", '{"query": "%s"}', "query"),
        ("/v1/golden-dataset/import", '{"entries": [{"query": "%s"}]}', "entries"),
        ("/v1/chat/completions", '{"model": "%s", "messages": []}', "model"),
    ],
)
def test_a_text_that_cannot_be_stored_is_refused(
    api: ApiServer, path: str, body: str, field: str, character: str
) -> None:
    refused = api.client.post(path, content=body % character, headers=JSON)
    assert any(line.startswith(field) for line in problem(refused, BAD)["details"])


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://example.org"},
        {"origin": "null"},
        {"origin": "http://localhost:1"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_a_page_of_another_origin_is_refused_without_a_key(
    api: ApiServer, headers: dict[str, str]
) -> None:
    """A form may be sent across origins without being asked for first."""
    files = {"file": ("a.md", b"# A\n")}
    problem(api.client.post("/v1/documents", files=files, headers=headers), HTTPStatus.FORBIDDEN)
    assert api.client.get("/v1/documents").json()["total"] == 0


def test_the_page_of_the_server_itself_is_answered(api: ApiServer) -> None:
    for headers in ({"origin": api.url}, {"sec-fetch-site": "same-origin"}):
        assert api.client.get("/v1/tags", headers=headers).status_code == HTTPStatus.OK


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "via", "x-real-ip"])
def test_what_a_proxy_passes_on_needs_a_key(api: ApiServer, header: str) -> None:
    told = api.client.get("/v1/tags", headers={header: "127.0.0.1"})
    problem(told, HTTPStatus.UNAUTHORIZED)


def test_keyless_mode_can_be_switched_off(url: str, tmp_path: Path) -> None:  # noqa: F811
    with serving(tmp_path, url, API_OPEN="false") as closed:
        problem(closed.client.get("/v1/tags"), HTTPStatus.UNAUTHORIZED)


def test_a_body_that_is_too_deep_is_explained(api: ApiServer) -> None:
    refused = api.client.post("/v1/retrieve", content="[" * 20_000, headers=JSON)
    assert problem(refused, BAD)["details"]
