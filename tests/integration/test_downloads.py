"""Documents from the web, on real sockets: lists, and servers that fail."""

import gzip
import ipaddress
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.types import RejectedRecord
from rag_resources.documents import web as public
from rag_resources.documents.folder import FoundFile
from rag_resources.documents.web import WebAddress, web_addresses, web_files
from tests.web_server import Handler, WebServer, cut_after, web_server

TEXT = "El plan promete cien mil viviendas públicas. ".encode() * 400
METADATA_SERVICE = "http://169.254.169.254/latest/meta-data"


@pytest.fixture
def web() -> Iterator[WebServer]:
    """A server without files."""
    with web_server() as serving:
        yield serving


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between tries, none of which is waited for."""
    told: list[float] = []
    monkeypatch.setattr(public, "sleep", told.append)
    return told


def fetch(
    folder: Path,
    *urls: str,
    known: dict[str, str] | None = None,
    allow_private: bool = True,
    megabytes: int = 10,
) -> list[FoundFile | RejectedRecord]:
    addresses = [WebAddress(url) for url in urls]
    found: list[FoundFile | RejectedRecord] = []
    for each in web_files(
        addresses, known or {}, folder, allow_private=allow_private, megabytes=megabytes
    ):
        if isinstance(each, FoundFile) and each.path.exists():
            each = replace(each, path=each.path.rename(each.path.with_suffix(".taken")))
        found.append(each)
    return found


def reason(found: FoundFile | RejectedRecord) -> str:
    assert isinstance(found, RejectedRecord)
    return found.reason


def test_a_file_that_did_not_change_is_not_sent_again(web: WebServer, tmp_path: Path) -> None:
    urls = [
        web.put("/a.txt", TEXT, ETag='"1"'),
        web.put("/b.txt", TEXT, Last_Modified="Mon, 03 Nov 2025 10:00:00 GMT"),
        web.put("/c.txt", TEXT),
    ]
    found = fetch(tmp_path, *urls)
    assert [each.path.read_bytes() for each in found if isinstance(each, FoundFile)] == [TEXT] * 3
    known = {each.address: each.etag for each in found if isinstance(each, FoundFile)}
    again = fetch(tmp_path, *urls, known=known)
    assert {each.address: each.etag for each in again if isinstance(each, FoundFile)} == known
    assert web.asked["/a.txt"][1]["If-None-Match"] == '"1"'
    assert "If-Modified-Since" in web.asked["/b.txt"][1]


def test_a_cut_connection_is_tried_again(
    web: WebServer, tmp_path: Path, waits: list[float]
) -> None:
    url = web.put("/plan.txt", TEXT)
    web.fail_first("/plan.txt", cut_after(TEXT, 5_000))
    (found,) = fetch(tmp_path, url)
    assert isinstance(found, FoundFile)
    assert found.path.read_bytes() == TEXT
    assert waits == [0.5]


def test_a_failed_file_says_why_and_the_others_go_on(
    web: WebServer, tmp_path: Path, waits: list[float]
) -> None:
    web.answers["/500.txt"] = lambda h: h.send(500, b"")
    page = b"<!doctype html><html><body>Vuelva a entrar</body></html>"
    found = fetch(
        tmp_path,
        web.url("/gone.txt"),
        web.url("/500.txt"),
        web.put("/plan.pdf", page, Content_Type="text/html"),
        web.put("/large.txt", b"x" * (1024**2 + 1)),
        web.put("/good.txt", TEXT),
        megabytes=1,
    )
    assert [reason(each).rpartition(" (")[0] or reason(each) for each in found[:2]] == [
        f"{web.url('/gone.txt')} responde 404",
        f"{web.url('/500.txt')} responde 500",
    ]
    assert "no es un PDF" in reason(found[2])
    assert "1 MB" in reason(found[3])
    assert isinstance(found[4], FoundFile)
    assert len(web.asked["/gone.txt"]) == 1
    assert len(web.asked["/500.txt"]) == 3


def test_what_unpacks_to_too_much_is_stopped(web: WebServer, tmp_path: Path) -> None:
    bomb = gzip.compress(b"\0" * 50 * 1024**2)
    url = web.put("/bomb.txt", bomb, Content_Encoding="gzip")
    (found,) = fetch(tmp_path, url, megabytes=1)
    assert "1 MB" in reason(found)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "240.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "::ffff:127.0.0.1",
        "64:ff9b::a00:1",
        "2002:7f00:1::",
        "ff02::1",
    ],
)
def test_addresses_of_the_own_machine_and_network_are_not_public(address: str) -> None:
    assert not public.is_public(ipaddress.ip_address(address))


def test_private_addresses_are_refused_before_anything_is_sent(
    web: WebServer, tmp_path: Path
) -> None:
    url = web.put("/a.txt", TEXT)
    (found,) = fetch(tmp_path, url, allow_private=False)
    assert "DOWNLOAD_ALLOW_PRIVATE=true" in reason(found)
    assert not web.asked


def test_a_redirect_to_a_private_address_is_refused(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = public.is_public
    monkeypatch.setattr(public, "is_public", lambda own: str(own) == "127.0.0.1" or usual(own))
    web.answers["/a.txt"] = lambda h: h.send(302, b"", Location=METADATA_SERVICE)
    web.answers["/file.txt"] = lambda h: h.send(302, b"", Location="file:///etc/passwd")
    web.answers["/loop.txt"] = lambda h: h.send(302, b"", Location="/loop.txt")
    urls = map(web.url, ("/a.txt", "/file.txt", "/loop.txt"))
    first, second, third = fetch(tmp_path, *urls, allow_private=False)
    assert "lleva a 169.254.169.254" in reason(first)
    assert "no es una dirección válida" in reason(second)
    assert "redirige demasiadas veces" in reason(third)


def test_a_name_is_resolved_once(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second answer of a name server would lead elsewhere, and is never asked for."""
    asked: list[str] = []
    usual = public.socket.getaddrinfo

    def resolve(host: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(str(host))
        return usual("127.0.0.1" if host == "plan.example" else host, *arguments, **options)

    monkeypatch.setattr(public.socket, "getaddrinfo", resolve)
    web.put("/a.txt", TEXT)
    (found,) = fetch(tmp_path, f"http://plan.example:{web.server_port}/a.txt")
    assert isinstance(found, FoundFile)
    assert asked.count("plan.example") == 1
    assert web.asked["/a.txt"][0]["Host"] == f"plan.example:{web.server_port}"


def test_credentials_and_queries_are_in_no_message() -> None:
    url = "https://ana:secreto@example.com/a.pdf?token=secreto"
    assert public.without_credentials(url) == "https://example.com/a.pdf"


def test_a_text_lists_urls_once_each_and_names_bad_lines(tmp_path: Path) -> None:
    path = tmp_path / "urls.txt"
    path.write_text(
        "# de hoy\nhttps://a.example/1.pdf\n\nhttps://a.example/1.pdf\nftp://x\n", "utf-8"
    )
    first, second = web_addresses(str(path))
    assert first == WebAddress("https://a.example/1.pdf")
    assert isinstance(second, RejectedRecord)
    assert second.location == f"{path}:5"


def test_a_csv_lists_urls_with_metadata(tmp_path: Path) -> None:
    path = tmp_path / "urls.csv"
    path.write_text("url,partido,año,title\nhttps://a.example/1.pdf,verde,2024,Plan\n", "utf-8")
    (found,) = web_addresses(str(path))
    assert isinstance(found, WebAddress)
    assert (found.title, found.fields) == ("Plan", {"partido": "verde", "año": 2024})
    path.write_text("Partido;URL\nverde;https://a.example/2.pdf\n", "utf-8-sig")
    (other,) = web_addresses(str(path))
    assert other == WebAddress("https://a.example/2.pdf", {"Partido": "verde"})
    path.write_text("partido\nverde\n", "utf-8")
    with pytest.raises(InvalidSourceError, match="no tiene la columna «url»"):
        list(web_addresses(str(path)))


def test_files_are_removed_when_they_were_taken(web: WebServer, tmp_path: Path) -> None:
    urls = [web.put(f"/{number}.txt", TEXT) for number in range(9)]
    addresses = [WebAddress(url) for url in urls]
    seen = 0
    for found in web_files(addresses, {}, tmp_path, allow_private=True, megabytes=1):
        assert isinstance(found, FoundFile)
        assert found.path.read_bytes() == TEXT
        seen += 1
    assert seen == 9
    assert not list(tmp_path.iterdir())


def test_a_server_that_drips_is_given_up_in_time(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = web.answers  # The handler ends with the server.

    def drip(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        try:
            while "/drip.txt" in stop:
                handler.wfile.write(b"x" * 100_000)
                handler.wfile.flush()
                handler.connection.settimeout(0.05)
                try:
                    handler.connection.recv(1)
                except TimeoutError:
                    continue
                break
        except OSError:
            pass
        handler.close_connection = True

    web.answers["/drip.txt"] = drip
    monkeypatch.setattr(public, "FILE_TIMEOUT_S", 0.1)
    (found,) = fetch(tmp_path, web.url("/drip.txt"))
    assert "no responde a tiempo" in reason(found)
    del stop["/drip.txt"]
