"""The page to ask at, in a real browser, with a real server behind it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from rag_resources.core.api_keys import ApiRole
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.documents.applying import apply_window
from rag_resources.documents.arrival import arrive
from rag_resources.documents.extracting import extract_window
from rag_resources.documents.folder import folder_files
from rag_resources.files import LocalFiles
from rag_resources.indexing.chunk import chunk_window
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from rag_resources.store.api_keys import Keys
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.notes import note_id
from tests.api_server import ApiServer, serving
from tests.browser import chromium
from tests.corpus import ALWAYS
from tests.databases import cloned
from tests.language_models import reply
from tests.ollama_server import Fault
from tests.openai_server import OpenAIServer
from tests.pdf_files import draw_lines, pdf_of

DAY = datetime(2025, 1, 12, tzinfo=UTC)
COST = "El taller 🔧 pide 415 euros por arreglar la dirección."
PAID = "Andreu lo paga el martes con la tarjeta de su hermana."
LATHE = "| Torno | 73 euros |"
TARIFF = f"| Máquina | Precio |\n| --- | --- |\n{LATHE}\n"
HOUSES = "El plan promete construir cien mil viviendas públicas de alquiler."
THEIRS = "El taller de la vecina pide 999 euros."
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
CAT = f"La gata [[Nube]] {HOSTILE} se escapó por la ventana."
RECORDS = (
    NoteRecord("tarifas", "Tarifas", TARIFF, DAY),
    NoteRecord("furgo", "La furgoneta", f"Llovió 🌧. {COST} {PAID}", DAY, tags=("coche",)),
    NoteRecord("gata", f"Gata {HOSTILE}", CAT, DAY, tags=("gata",)),
)
TALL, WIDE = ViewportSize(width=360, height=740), ViewportSize(width=1280, height=860)


def written(_: Any, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What the language model answers: sentences of the passages about what was asked."""
    passages = re.split(r"\[Fuente \d+:", messages[-1]["content"])
    asked = messages[-1]["content"].lower()
    topics = {
        "taller": (COST, PAID, THEIRS),
        "plan": (HOUSES,),
        "gata": (CAT,),
        "torno": (LATHE,),
    }
    wanted = next((own for topic, own in topics.items() if f"¿{topic}" in asked), ())
    return reply(
        *(
            (sentence, [number])
            for sentence in wanted
            for number, passage in enumerate(passages)
            if number and sentence[:12] in passage
        )
    )


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIServer]:
    with OpenAIServer(answers=written) as running:
        yield running


@pytest.fixture(scope="module")
def keys() -> dict[str, str]:
    """Whole keys, by name, filled in by `api`."""
    return {}


@pytest.fixture(scope="module")
def api(
    server: EmbeddedServer,
    template_database: str,
    model: OpenAIServer,
    keys: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ApiServer]:
    """A server with notes and a document of one tenant, a note of another, and keys."""
    folder = tmp_path_factory.mktemp("page")
    with cloned(server, template_database) as (name,):
        url = server.dsn(name)
        with Database(url) as database, Database(url, tenant="vecina") as theirs:
            ingest(database, RECORDS, tenant="default", source="notes")
            add_document(database, folder)
            ingest(
                theirs,
                [NoteRecord("taller.txt", "", THEIRS, DAY, tags=("ajena",))],
                tenant="vecina",
                source="notes",
            )
            for each in (database, theirs):
                chunk_window(each, ALWAYS, ChunkingConfig())
                with each.transaction() as transaction:
                    refresh_statistics(transaction)
            keys["writer"], _ = Keys(database).create("prueba", ApiRole.WRITER)
            keys["reader"], _ = Keys(database).create("prueba", ApiRole.READER)
            keys["theirs"], _ = Keys(theirs).create("ajena", ApiRole.READER)
        variables = {
            "FILES_URL": (folder / "files").as_uri(),
            "LLM_MODEL": "openai:llama3.2",
            "OPENAI_BASE_URL": model.base_url,
        }
        with serving(folder, url, **variables) as running:
            yield running


def add_document(database: Database, folder: Path) -> None:
    """Read a PDF file with a hostile name."""
    (folder / "docs").mkdir()
    pdf = pdf_of(lambda canvas: draw_lines(canvas, [HOUSES], 60, 80))
    (folder / "docs" / "plan<img src=x onerror=alert(1)>.pdf").write_bytes(pdf.getvalue())
    files, config = LocalFiles(folder / "files"), ExtractionConfig()
    own = {"tenant": "default", "source": "documents"}
    arrive(database, files, folder_files(folder / "docs"), config=config, **own)
    extract_window(database, files, ALWAYS, config, tenant="default")
    apply_window(database, ALWAYS, tenant="default")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@contextmanager
def visit(browser: Browser, api: ApiServer, key: str, **options: Any) -> Iterator[Page]:
    """Open the page as a reader of its own, and give it a key in the dialog that asks for one."""
    chosen = {"locale": "es-ES", "viewport": WIDE, "reduced_motion": "reduce"} | options
    context = browser.new_context(**chosen)
    context.set_default_timeout(60_000)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console",
        lambda said: wrong.append(said.text) if "Security Policy" in said.text else None,
    )
    try:
        page.goto(api.url)
        page.locator("#key-value").fill(key)
        page.locator("#key-value").press("Enter")
        expect(page.locator("#who")).not_to_be_empty()
        yield page
        assert page.evaluate("window.hacked") is None
        assert wrong == []
    finally:
        context.close()


TABLE = """Un pago **fijo** <img src=x onerror=alert(1)> [mal](javascript:alert(1))

| Quién | Cuánto |
|---|---|
| Ana | 3 |
| Lola | 7 |"""


def ask(page: Page, question: str) -> Any:
    """Ask, and return the element of the question once its answer is whole."""
    page.locator("#question").fill(question)
    page.locator("#question").press("Enter")
    turn = page.locator(".turn").last
    expect(turn.locator(".about")).to_be_attached()
    return turn


def test_nothing_of_the_page_is_inline_and_files_are_kept_by_their_tag(api: ApiServer) -> None:
    page = api.client.get("/", headers={"accept-language": "de, fr;q=0.8, en;q=0.5"})
    assert '<html lang="fr"' in page.text
    assert not re.search(
        r"<style|<script(?! type=\"module\" src=\"/static/)|\son\w+=|style=", page.text
    )
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    names = re.findall(r'(?:src|href)="/static/([\w.]+)"', page.text)
    scripts = api.client.get("/static/page.js").text + api.client.get("/static/turn.js").text
    names += re.findall(r'from "\./(\w+\.js)"', scripts)
    assert {"page.css", "page.js", "favicon.svg", "turn.js", "api.js", "source.js"} <= set(names)
    for name in names:
        sent = api.client.get(f"/static/{name}")
        assert sent.status_code == HTTPStatus.OK
        known = {"if-none-match": sent.headers["etag"]}
        again = api.client.get(f"/static/{name}", headers=known)
        assert again.status_code == HTTPStatus.NOT_MODIFIED
    assert api.client.get("/static/page.py").status_code == HTTPStatus.NOT_FOUND
    assert '<html lang="es"' in api.client.get("/", params={"lang": "es"}).text


def test_notes_tags_and_pages_are_opened_by_those_who_may(
    api: ApiServer, keys: dict[str, str]
) -> None:
    mine = {"authorization": f"Bearer {keys['reader']}"}
    theirs = {"authorization": f"Bearer {keys['theirs']}"}
    one = f"/v1/notes/{note_id('default', 'notes', 'furgo')}"
    assert api.client.get(one, headers=mine).json()["title"] == "La furgoneta"
    cat = api.client.get(f"/v1/notes/{note_id('default', 'notes', 'gata')}", headers=mine)
    assert cat.json()["links"] == ["Nube"]
    refused = api.client.get(one, headers=theirs | {"accept-language": "en"})
    assert refused.status_code == HTTPStatus.NOT_FOUND
    assert "does not exist" in refused.json()["error"]
    tags = api.client.get("/v1/tags", headers=mine).json()["tags"]
    assert {each["tag"]: each["notes"] for each in tags} == {"coche": 1, "gata": 1}
    [document] = api.client.get("/v1/documents", headers=mine).json()["documents"]
    page = f"/v1/documents/{document['id']}/pages/1"
    plain, marked = (
        api.client.get(page, params=box, headers=mine) for box in ({}, {"box": "60,60,300,90"})
    )
    assert plain.headers["content-type"] == "image/png"
    assert plain.content != marked.content
    for wrong, status in (
        ({"box": "1,2,3"}, HTTPStatus.BAD_REQUEST),
        ({"box": "nan,1,1,1"}, HTTPStatus.BAD_REQUEST),
    ):
        assert api.client.get(page, params=wrong, headers=mine).status_code == status
    assert api.client.get(f"{page}7", headers=mine).status_code == HTTPStatus.NOT_FOUND
    assert api.client.get(page, headers=theirs).status_code == HTTPStatus.NOT_FOUND
    me = api.client.get("/v1/me", headers=theirs).json()
    assert (me["tenant"], me["role"]) == ("vecina", "reader")


def test_a_question_is_answered_and_a_citation_opens_the_note_at_its_range(
    browser: Browser, api: ApiServer, keys: dict[str, str]
) -> None:
    """Also by keyboard alone, with the focus where a reader expects it."""
    with visit(browser, api, keys["reader"]) as page:
        turn = ask(page, "¿Taller, cuánto?")
        expect(turn.locator(".sentence")).to_have_count(2)
        expect(turn.locator(".answer")).to_have_attribute("aria-busy", "false")
        expect(page.locator("#status")).to_have_text(
            _("Answer complete. Sources: {count}.").format(count=2)
        )
        assert turn.locator(".sentence").first.inner_text() == f"{COST}1"
        expect(page.locator("#question")).to_be_focused()
        cite = turn.locator(".cite").first
        expect(cite).to_have_attribute("aria-label", "Fuente 1: La furgoneta")
        cite.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#source-text mark")).to_have_text(COST)
        expect(page.locator("#source-title")).to_be_focused()
        expect(page.locator("#source-where")).to_have_text("12 ene 2025")
        expect(cite).to_have_attribute("aria-expanded", "true")
        page.keyboard.press("Escape")
        expect(page.locator("#source")).to_be_hidden()
        expect(cite).to_be_focused()
        kept = "Object.keys({...localStorage, ...sessionStorage}).concat(document.cookie || [])"
        assert {each.partition(" ")[0] for each in page.evaluate(kept)} == {
            "rag-history",
            "rag-key",
        }
        page.locator("#key-open").click()
        page.locator("#key-forget").click()
        expect(page.locator("#key-notice")).to_have_text(_("This server asks for a key."))


def test_the_page_of_a_document_is_shown_with_the_cited_box(
    browser: Browser, api: ApiServer, keys: dict[str, str]
) -> None:
    with visit(browser, api, keys["reader"]) as page:
        turn = ask(page, "¿Plan de viviendas?")
        turn.locator(".cite").first.click()
        picture = page.locator("#source-picture img")
        expect(picture).to_have_attribute("alt", re.compile(r"^Página 1 de «plan<img src=x"))
        page.wait_for_function("document.querySelector('#source-picture img').naturalWidth > 400")
        expect(page.locator("#source-text mark")).to_have_text(HOUSES)
        expect(page.locator("#source-where")).to_contain_text("pág. 1")


def test_two_tenants_side_by_side_see_their_own_notes(
    browser: Browser, api: ApiServer, keys: dict[str, str]
) -> None:
    with (
        visit(browser, api, keys["reader"]) as mine,
        visit(browser, api, keys["theirs"]) as theirs,
    ):
        ours, others = ask(mine, "¿Taller, precio?"), ask(theirs, "¿Taller, precio?")
        assert "415" in ours.inner_text()
        assert "999" not in ours.inner_text()
        assert "999" in others.inner_text()
        expect(others.locator(".sources .title")).to_have_text("taller.txt")
        assert "415" not in others.inner_text()
        tags = theirs.locator("#filter-tag option").all_text_contents()
        assert tags == [_("Any"), "ajena (1)"]


def test_filters_restrict_the_next_question(
    browser: Browser, api: ApiServer, keys: dict[str, str]
) -> None:
    with visit(browser, api, keys["reader"]) as page:
        page.locator("#filters-summary").click()
        page.locator("#filter-tag").select_option("gata")
        page.locator("#filter-until").fill("2025-01-12")
        expect(page.locator("#filters-summary")).to_have_text("Filtros (2)")
        turn = ask(page, "¿Taller y ahora?")
        expect(turn).to_contain_text("Solo en: gata · ≤ 2025-01-12")
        assert "415" not in turn.inner_text()
        page.locator("#filters-clear").click()
        page.locator("#filter-from").fill("2025-01-13")
        assert "415" not in ask(page, "¿Taller y después?").inner_text()
        page.locator("#filters-clear").click()
        turn = ask(page, "¿Taller y siempre?")
        assert "415" in turn.inner_text()
        turn.locator(".passages").click()
        expect(turn.locator(".passage").first).to_be_visible()
        expect(turn.get_by_text(_("Nearest passages"), exact=True)).to_be_visible()


def test_thumbs_are_stored(browser: Browser, api: ApiServer, keys: dict[str, str]) -> None:
    """On the answer and on a citation; the second thought replaces the first."""
    with visit(browser, api, keys["reader"]) as page:
        turn = ask(page, "¿Taller, opinión?")
        whole, source = turn.locator(".actions .thumbs"), turn.locator(".sources .thumbs").first
        for thumb in (whole.locator(".down"), whole.locator(".up"), source.locator(".down")):
            with page.expect_response("**/v1/feedback") as sent:
                thumb.click()
            assert sent.value.ok
            expect(thumb).to_have_attribute("aria-pressed", "true")
        expect(whole.locator(".down")).to_have_attribute("aria-pressed", "false")
        expect(page.locator("#status")).to_have_text(_("Noted."))
        kept = sent.value.json()
        assert (kept["citation"], kept["verdict"]) == (1, "down")
        source.locator("input").fill("Es de otro año.")
        with page.expect_response("**/v1/feedback") as sent:
            source.locator("input").press("Enter")
        assert sent.value.json()["comment"] == "Es de otro año."


def test_documents_are_listed_and_added_by_those_who_may(
    browser: Browser, api: ApiServer, keys: dict[str, str], tmp_path: Path
) -> None:
    """What cannot be read is not offered as a filter, and readers see no form."""
    bad = tmp_path / "rota.pdf"
    bad.write_bytes(b"%PDF-1.4 rota")
    with visit(browser, api, keys["reader"]) as page:
        page.locator("#documents-open").click()
        expect(page.locator("#documents-list li").first).to_be_visible()
        expect(page.locator("#documents-form")).to_be_hidden()
    with visit(browser, api, keys["writer"]) as page:
        page.locator("#documents-open").click()
        page.locator("#documents-file").set_input_files(bad)
        with page.expect_response("**/v1/documents") as sent:
            page.locator("#documents-form button").click()
        assert sent.value.status == HTTPStatus.ACCEPTED
        expect(page.locator("#documents-list")).to_contain_text("rota")


def test_answers_are_kept_in_the_browser_and_markdown_is_shown(
    browser: Browser, api: ApiServer, keys: dict[str, str]
) -> None:
    """Tables, bold and lists become elements, HTML stays text; the key's own history only."""
    with visit(browser, api, keys["reader"]) as page:
        shown = page.evaluate(
            """async ([text, start, end]) => {
                const { rendered } = await import("/static/markdown.js");
                const box = document.createElement("div");
                box.append(rendered(text, { start, end }));
                return box.innerHTML;
            }""",
            [TABLE, TABLE.index("| Lola"), len(TABLE)],
        )
        assert "<strong>fijo</strong>" in shown
        assert shown.count("<td>") == 4
        assert '<td><mark tabindex="-1">Lola' in shown
        assert "&lt;img" in shown
        assert "javascript:" not in shown.replace("(javascript:", "")
        turn = ask(page, "¿Taller, historial?")
        expect(turn.locator(".copy")).to_be_visible()
        page.locator("#history-open").click()
        page.locator("#history-list summary").click()
        expect(page.locator("#history-list .text")).to_contain_text(COST)
        with page.expect_download() as exported:
            page.locator("#history-export").click()
        assert COST in exported.value.path().read_text("utf-8")
        page.locator("#history-delete").click()
        expect(page.locator("#history-list summary")).to_have_count(0)


def test_an_answer_becomes_a_golden_question_for_those_who_may(
    browser: Browser, api: ApiServer, keys: dict[str, str]
) -> None:
    with visit(browser, api, keys["reader"]) as page:
        expect(ask(page, "¿Taller, dinero?").locator(".golden")).to_have_count(0)
    with visit(browser, api, keys["writer"]) as page:
        turn = ask(page, "¿Taller, dinero?")
        turn.locator(".golden").click()
        expect(page.locator("#golden-notes label")).to_have_count(1)
        page.locator("#golden-notes input").first.uncheck()
        page.locator("#golden-form .main").click()
        expect(page.locator("#golden-notice")).to_contain_text("relevant")
        page.locator("#golden-notes input").first.check()
        page.locator("#golden-form .main").click()
        expect(turn).to_contain_text(_("Saved among the golden questions."))
    stored = api.client.get(
        "/v1/golden-dataset", headers={"authorization": f"Bearer {keys['reader']}"}
    ).json()["entries"]
    assert [(each["query"], each["expectedAnswer"]) for each in stored] == [
        ("¿Taller, dinero?", COST)
    ]


def test_nothing_that_notes_or_file_names_say_is_run(
    browser: Browser, api: ApiServer, keys: dict[str, str]
) -> None:
    """Titles, texts, tags and file names with markup are shown as they are; `visit` checks it."""
    with visit(browser, api, keys["reader"]) as page:
        turn = ask(page, "¿Gata y ventana?")
        assert HOSTILE in turn.locator(".answer").inner_text()
        turn.locator(".cite").first.click()
        expect(page.locator("#source-title")).to_have_text(f"Gata {HOSTILE}")
        expect(page.locator("#source-text")).to_contain_text(HOSTILE)
        files = page.locator("#filter-file option").all_text_contents()
        assert any("<img src=x" in each for each in files)
        assert page.locator("main img, #source img").count() == 0


CONTRASTS = """() => {
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = (css) => {
    const [r, g, b] = css.match(/[\\d.]+/g).map(Number).map(channel);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const own = getComputedStyle(e).backgroundColor;
      if (!own.endsWith(', 0)')) return own;
    }
    return getComputedStyle(document.documentElement).backgroundColor;
  };
  return [...document.querySelectorAll('main *, .top *, #source *')]
    .filter((e) => e.checkVisibility())
    .filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .map((e) => {
      const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
      return [e.tagName + '.' + e.className, (a + 0.05) / (b + 0.05)];
    })
    .filter(([name, ratio]) => ratio < 4.5 && !name.includes('thumb'));
}"""
"""Texts with less contrast than WCAG 2.2 asks for (1.4.3), with their ratios."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [TALL, WIDE], ids=["360", "1280"])
def test_the_page_fits_and_can_be_read(
    browser: Browser, api: ApiServer, keys: dict[str, str], scheme: str, size: ViewportSize
) -> None:
    options = {"color_scheme": scheme, "viewport": size}
    with visit(browser, api, keys["writer"], **options) as page:
        turn = ask(page, "¿Taller, otra vez?")
        assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
        assert page.evaluate(CONTRASTS) == []
        outside = """() => [...document.querySelectorAll('main button, .top button')]
          .filter((e) => e.checkVisibility())
          .filter((e) => e.getBoundingClientRect().right > innerWidth).length"""
        assert page.evaluate(outside) == 0
        turn.locator(".cite").first.click()
        expect(page.locator("#source-text mark")).to_be_in_viewport()
        assert page.evaluate(CONTRASTS) == []
        page.locator("#source-close").click()


def test_a_server_that_dies_leaves_what_had_arrived(
    browser: Browser, api: ApiServer, keys: dict[str, str], model: OpenAIServer
) -> None:
    """The last test: it kills the server. Before, the page is used while the answer streams."""
    with visit(browser, api, keys["reader"]) as page:
        model.inject(Fault.STALL, seconds=60)
        page.locator("#question").fill("¿Taller a medias?")
        page.locator("#question").press("Enter")
        turn = page.locator(".turn").last
        expect(turn.locator(".sentence")).to_have_count(1)
        expect(turn.locator(".state")).to_contain_text(_("Answering…"))
        turn.locator(".cite").click()
        expect(page.locator("#source-text mark")).to_have_text(COST)
        page.keyboard.press("Escape")
        page.locator("#question").fill("¿y mientras tanto?")
        api.process.kill()
        expect(turn.locator(".notice")).to_contain_text(
            _("The answer is incomplete. What had arrived is checked and kept.")
        )
        expect(turn.locator(".sentence")).to_have_count(1)
        expect(turn.locator(".sources .title")).to_have_text("La furgoneta")
        expect(page.locator("#question")).to_have_value("¿y mientras tanto?")
        turn.locator(".again").click()
        last = page.locator(".turn").last
        expect(last.locator(".notice")).to_contain_text(
            _("The server could not be reached. Check that it is running, and ask again.")
        )
    with pytest.raises(httpx.TransportError):
        api.client.get("/healthz")
