"""Files by URL: a folder that only their owner reads, and an object store that answers for real."""

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rag_resources.core.errors import InvalidConfigurationError, InvalidParameterError
from rag_resources.files import LocalFiles, ObjectFiles, open_files, write_atomically
from rag_resources.languages.messages import _
from rag_resources.settings import load_settings

SECRET = "a-secret-key"


class Bucket(ThreadingHTTPServer):
    """The few calls of S3 that the product makes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), BucketHandler)
        self.objects: dict[str, bytes] = {}
        self.refuses = False
        threading.Thread(target=self.serve_forever, daemon=True).start()


class BucketHandler(BaseHTTPRequestHandler):
    server: Bucket

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.server.refuses:
            self.server.objects[self.path] = body
        self._answer(403 if self.server.refuses else 200)

    def do_GET(self) -> None:
        found = self.server.objects.get(self.path)
        self._answer(404 if found is None else 200, found or b"")

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 23 Nov 2026 08:00:00 GMT")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    server = Bucket()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "us",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(name, value)
    yield server
    server.shutdown()
    server.server_close()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_folder_keeps_files_that_only_their_owner_reads(tmp_path: Path) -> None:
    """Whatever the umask; folders that were there stay as they are."""
    tmp_path.chmod(0o755)
    files = open_files((tmp_path / "con espacio").as_uri())
    before = os.umask(0)
    try:
        files.write("reports/a/b.html", b"uno")
    finally:
        os.umask(before)
    path = tmp_path / "con espacio" / "reports" / "a" / "b.html"
    assert files.where("reports/a/b.html") == str(path)
    assert mode(path) == 0o600
    made = (path.parent, path.parent.parent, path.parent.parent.parent)
    assert [mode(folder) for folder in made] == [0o700] * 3
    assert mode(tmp_path) == 0o755
    files.write("reports/a/b.html", b"dos")
    assert files.read("reports/a/b.html") == b"dos"
    assert [item.name for item in path.parent.iterdir()] == ["b.html"]


def test_a_folder_that_cannot_be_written_or_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameterError, match=r"file/a\.html"):
        LocalFiles(tmp_path / "file").write("a.html", b"")
    with pytest.raises(InvalidParameterError, match="nothing"):
        LocalFiles(tmp_path).read("nothing")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="file"):
        write_atomically(tmp_path / "file", "x", mode=0o600)
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_a_bucket_keeps_files_under_its_prefix(bucket: Bucket) -> None:
    files = open_files("s3://cubo/prefijo/")
    files.write("reports/a.html", b"uno")
    assert bucket.objects == {"/cubo/prefijo/reports/a.html": b"uno"}
    assert files.read("reports/a.html") == b"uno"
    assert files.where("reports/a.html") == "s3://cubo/prefijo/reports/a.html"


def test_a_bucket_that_refuses_is_told_without_keys(bucket: Bucket) -> None:
    files = ObjectFiles("s3://cubo")
    with pytest.raises(InvalidParameterError, match="s3://cubo") as missing:
        files.read("nothing")
    bucket.refuses = True
    with pytest.raises(InvalidParameterError, match="PermissionDeniedError") as refused:
        files.write("a", b"1")
    for error in (missing, refused):
        assert SECRET not in error.value.message
        assert "http" not in error.value.message


@pytest.mark.parametrize(
    "url",
    ["/folder", "file://folder", "ftp://host/x", "s3://", "s3://key:secret@bucket", "file://"],
)
def test_a_url_that_names_no_place_is_refused(url: str) -> None:
    with pytest.raises(InvalidConfigurationError) as refused:
        load_settings(files_url=url)
    assert refused.value.problems == [
        "FILES_URL: "
        + _(
            "must be file:///folder, s3://bucket/prefix, gs://bucket/prefix or "
            "az://container/prefix, without credentials: these go in the environment"
        )
    ]


def test_files_are_kept_beside_the_embedded_database_or_where_it_is_said(tmp_path: Path) -> None:
    embedded = load_settings(rag_home=tmp_path, files_url="")
    assert embedded.files_address == tmp_path.as_uri()
    assert embedded.keeps_files
    own = load_settings(rag_home=tmp_path, database_url="postgresql://h/d")
    assert not own.keeps_files
    told = load_settings(database_url="postgresql://h/d", files_url="s3://b")
    assert (told.keeps_files, told.files_address) == (True, "s3://b")
