"""Reverse proxies as docs/http.md sets them up, with the real programs where they are installed."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from rag_resources.database.ports import choose_port
from rag_resources.database.server import EmbeddedServer
from tests.api_server import ApiServer, starting
from tests.databases import cloned
from tests.waiting import wait_until

DOCS = Path(__file__).parents[2] / "docs" / "http.md"
PLAIN = "server {\n listen 443 ssl;\n location / { proxy_pass http://127.0.0.1:8000; }\n}\n"


class Proxy(NamedTuple):
    """A program, and the arguments that it is started with."""

    name: str
    block: str


def documented(language: str) -> str:
    """The block of a proxy in the docs."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    return str(block)


@pytest.fixture(scope="module")
def api(
    server: EmbeddedServer, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiServer]:
    """A server without keys."""
    with (
        cloned(server, template_database) as (name,),
        starting(tmp_path_factory.mktemp("proxies"), server.dsn(name)) as running,
    ):
        running.wait_until("/healthz")
        yield running


@contextmanager
def proxied(proxy: Proxy, api: ApiServer, folder: Path) -> Iterator[str]:
    """Run a proxy in front of the API; yield its address. Only names, ports and TLS are changed."""
    program = shutil.which(proxy.name)
    if program is None:
        pytest.skip(f"{proxy.name} is not installed (Debian: apt-get install {proxy.name})")
    port = choose_port(None)
    block = proxy.block.replace("http://127.0.0.1:8000", api.url)
    block = block.replace("127.0.0.1:8000", api.url.removeprefix("http://"))
    block = block.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    block = re.sub(r"(?m)^ *ssl_certificate.*\n", "", block)
    block = block.replace("notas.example {", f"http://:{port} {{")
    own = folder / f"{proxy.name}.conf"
    if proxy.name == "nginx":
        paths = "".join(
            f"{kind}_temp_path {folder};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        own.write_text(
            f"pid {folder}/pid;\nevents {{}}\nhttp {{\n{paths}access_log off;\n{block}}}\n"
        )
        command = [program, "-c", str(own), "-e", str(folder / "log"), "-g", "daemon off;"]
    else:
        own.write_text("{\n    admin off\n    auto_https off\n}\n" + block)
        command = [program, "run", "--config", str(own), "--adapter", "caddyfile"]
    with (folder / "out").open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={"HOME": str(folder), "PATH": "/usr/bin"}
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: process.poll() is not None or is_up(address), 30)
        assert process.poll() is None, (folder / "out").read_text("utf-8")
        yield address
    finally:
        process.terminate()
        process.wait(30)


def is_up(address: str) -> bool:
    try:
        return httpx.get(f"{address}/healthz").is_success
    except httpx.TransportError:
        return False


@pytest.mark.parametrize(
    "proxy",
    [
        Proxy("nginx", documented("nginx")),
        Proxy("nginx", PLAIN),
        Proxy("caddy", documented("caddyfile")),
    ],
    ids=["nginx", "nginx, as short as it can be", "caddy"],
)
def test_nobody_is_the_owner_through_a_proxy(proxy: Proxy, api: ApiServer, tmp_path: Path) -> None:
    """Although it connects from this machine, and there are no keys."""
    assert api.client.get("/v1/me").json()["role"] == "owner"
    with proxied(proxy, api, tmp_path) as address:
        assert httpx.get(f"{address}/healthz").json() == {"status": "ok"}
        assert httpx.get(f"{address}/v1/me").status_code == HTTPStatus.UNAUTHORIZED
        form = {"file": ("a.txt", b"Hola.")}
        refused = httpx.post(f"{address}/v1/documents", files=form)
        assert refused.status_code == HTTPStatus.UNAUTHORIZED
