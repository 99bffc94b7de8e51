"""`rag document …` over a folder that was read."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_resources.application import open_application
from rag_resources.languages.messages import _
from rag_resources.settings import SAMPLE, load_settings
from tests.command_line import OF_DOCUMENTS, Outcome, call_rag, documented_commands, isolate
from tests.corpus import ALWAYS, SMALL, Corpus
from tests.pdf_files import PROSE, draw_lines, pdf_of, wrapped

Call = Callable[..., Outcome]
DAMAGED = _(
    "It cannot be read as {kind}: it is damaged or of another type. Open it with its program and "
    "save it again, or ask for another copy."
).format(kind="PDF")


@pytest.fixture
def call(
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Call:
    """Call `rag` on a database with a plan, a scanned page and a damaged file."""
    folder = tmp_path / "docs"
    folder.mkdir()
    pages = [lambda c: draw_lines(c, wrapped(PROSE, 80), 60, 80)] * 2
    (folder / "plan_2024.pdf").write_bytes(pdf_of(*pages).getvalue())
    (folder / "escaneado_2023.pdf").write_bytes(
        pdf_of(lambda c: c.rect(50, 50, 300, 300, fill=1)).getvalue()
    )
    (folder / "roto_2022.pdf").write_bytes(b"%PDF-1.7\nnada")
    isolate(
        monkeypatch,
        tmp_path,
        DATABASE_URL=database_url,
        FILES_URL=(tmp_path / "files").as_uri(),
        DOCUMENTS_SOURCE=str(folder),
        DOCUMENTS_PATTERN="{tipo}_{año}.pdf",
    )
    index_documents()

    def called(*arguments: str | Path) -> Outcome:
        return call_rag(monkeypatch, capsys, "document", *arguments)

    return called


def index_documents() -> None:
    """Read the documents of the settings' source, and index them."""
    with open_application(load_settings()) as application:
        application.documents.arrive()
        application.documents.extract(ALWAYS)
        application.documents.apply(ALWAYS)
        Corpus(application.database).index(SMALL)


def test_the_commands_of_the_page_do_what_it_shows(
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In their order, on the sample's documents."""
    isolate(
        monkeypatch,
        tmp_path,
        DATABASE_URL=database_url,
        FILES_URL=(tmp_path / "files").as_uri(),
        DOCUMENTS_SOURCE=str(SAMPLE / "documents"),
        DOCUMENTS_PATTERN="{tipo}_{año}.pdf",
    )
    index_documents()
    for arguments, shown in documented_commands(OF_DOCUMENTS):
        done = call_rag(monkeypatch, capsys, *arguments)
        assert done.code == 0, (arguments, done.out, done.err)
        missing = [word for word in re.findall(r"[^\W_]{3,}", shown) if word not in done.out]
        assert missing == [], (arguments, done.out)


def test_documents_are_listed_shown_reviewed_verified_and_deleted(
    call: Call, tmp_path: Path
) -> None:
    listed = call("list", "--json").json
    assert {each["title"]: each["status"] for each in listed["documents"]} == {
        "plan 2024": "completed",
        "escaneado 2023": "partial",
        "roto 2022": "failed",
    }
    reasons = {each["title"]: each["reason"] for each in listed["documents"]}
    assert reasons == {"plan 2024": None, "escaneado 2023": None, "roto 2022": DAMAGED}
    assert re.search(r"roto_2022\.pdf .*No se puede leer como PDF", call("list").out)
    shown = call("show", "plan_2024.pdf", "--json").json
    assert shown["metadata"] == {"tipo": "plan", "año": 2024}
    assert [page["number"] for page in shown["pages"]] == [1, 2]
    assert shown["readings"][0]["state"] == "applied"
    (failure,) = call("show", "roto_2022.pdf", "--json").json["failureReasons"]
    assert failure["reason"] == DAMAGED
    assert "dañado" in call("show", "roto_2022.pdf").out
    assert "movilidad" in call("show", "plan_2024.pdf", "--page", "2").out
    png = tmp_path / "pagina.png"
    drawn = call("show", "plan_2024.pdf", "--page", "1", "--png", png)
    assert (drawn.code, drawn.err) == (0, "")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "necesita OCR" in call("review").out
    assert "necesita OCR" in call("show", "escaneado_2023.pdf").out
    assert call("review", "escaneado_2023.pdf", "--page", "1", "--drop").code == 0
    assert call("review", "--json").json == {"waiting": []}
    verified = call("verify", "--json")
    assert verified.code == 0
    assert verified.json["share"] == 1
    assert verified.json["passages"] > 0
    assert call("delete", "plan_2024.pdf").code == 2
    assert call("delete", "plan_2024.pdf", "--yes", "--reason", "viejo").code == 0
    assert len(call("list", "--json").json["documents"]) == 2
    assert call("restore", "plan_2024.pdf").code == 0
    assert call("restore", "plan_2024.pdf").code == 2
