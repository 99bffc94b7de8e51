"""Web pages, Word, Markdown and text documents: blocks, what is removed, hostile files."""

import io
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_resources.core.documents import (
    DocumentReader,
    Page,
    PageFailure,
    check_section,
)
from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.sections import sections_of
from rag_resources.documents.docx import DocxReader
from rag_resources.documents.html import MAX_LEVELS, HtmlReader
from rag_resources.documents.text import MarkdownReader, TextReader
from rag_resources.documents.workbook import CsvReader, WorkbookReader
from tests.office_files import (
    BAD_NAME,
    DAMAGED,
    ENTITIES,
    PROTECTED,
    TOO_DEEP,
    archive,
    docx_parts,
    ods,
    paragraph,
    rows,
    xlsx_parts,
)
from tests.strategies import unaccounted

Blocks = list[tuple[str, int, str]]


def read_one(reader: DocumentReader, content: bytes | io.BytesIO) -> Page:
    (page,) = reader.read(io.BytesIO(content) if isinstance(content, bytes) else content)
    assert isinstance(page, Page)
    assert unaccounted(page, list(sections_of([page]))) == ()
    return page


def blocks(page: Page) -> Blocks:
    return [(each.kind.value, each.level, page.text[each.start : each.end]) for each in page.blocks]


def removed(page: Page) -> list[tuple[str, str]]:
    return [(each.reason, page.text[each.start : each.end]) for each in page.removed]


def refusal(reader: DocumentReader, content: bytes | io.BytesIO) -> str | None:
    with pytest.raises(InvalidSourceError) as caught:
        list(reader.read(io.BytesIO(content) if isinstance(content, bytes) else content))
    return caught.value.msgid


def html(body: str, head: str = "") -> bytes:
    return f"<!doctype html><html lang=es><head>{head}</head><body>{body}</body></html>".encode()


def test_a_web_page_has_headings_lists_tables_and_code() -> None:
    page = read_one(
        HtmlReader(),
        html(
            "<h1>Plan <b>de</b>\n vivienda</h1><p>Uno<br>dos &amp; <i>tres</i>.</p><ul><li>a<ul>"
            "<li>b</ul><li><p>c</p><p>d</p></ul><ol start=3><li>e</ol><pre>x = 1\n  y</pre><table>"
            "<caption>Gastos</caption><tr><th>Mes<th>Importe<tr><td>Enero<td><p>3</p> €</table>"
            "<table><tr><td>Mes<td>Día<tr><td>Mayo<td>2</table><h3>Otro</h3>suelto"
        ),
    )
    assert blocks(page) == [
        ("heading", 1, "Plan de vivienda"),
        ("paragraph", 0, "Uno\ndos & tres."),
        ("list_item", 1, "- a"),
        ("list_item", 2, "- b"),
        ("list_item", 1, "- c"),
        ("paragraph", 0, "d"),
        ("list_item", 1, "3. e"),
        ("code", 0, "x = 1\n  y"),
        ("paragraph", 0, "Gastos"),
        ("table_header", 0, "Mes\tImporte"),
        ("table_row", 0, "Enero\t3 €"),
        ("table_header", 0, "Mes\tDía"),
        ("table_row", 0, "Mayo\t2"),
        ("heading", 3, "Otro"),
        ("paragraph", 0, "suelto"),
    ]


def test_cells_stay_in_their_columns() -> None:
    page = read_one(
        HtmlReader(),
        html(
            "<table><tr><th rowspan=2>Mes<th colspan=2>2024<th>2025<tr><th>A<th>B<th>C"
            "<tr><td rowspan=0>Mayo<td>1<td><td>3<tr><td>2<td><td>4"
            "<tbody><tr><td>Junio<td>5<td><td>6</table>"
        ),
    )
    assert blocks(page) == [
        ("table_header", 0, "Mes\t2024\t\t2025"),
        ("table_header", 0, "Mes\tA\tB\tC"),
        ("table_row", 0, "Mayo\t1\t\t3"),
        ("table_row", 0, "Mayo\t2\t\t4"),
        ("table_row", 0, "Junio\t5\t\t6"),
    ]


LINKS = "".join(f"<li><a href=/{number}>Enlace {number}</a>" for number in range(4))


@pytest.mark.parametrize(
    "aside",
    [
        "<nav>Fuera</nav>",
        "<div role=navigation>Fuera</div>",
        "<footer>Fuera</footer>",
        "<div class='main-menu x'>Fuera</div>",
        "<div id=cookies><p>Fuera</p></div>",
        f"<ul>{LINKS}</ul>",
    ],
)
def test_navigation_is_removed_and_listed(aside: str) -> None:
    page = read_one(HtmlReader(), html(f"{aside}<p>Dentro, con bastante más texto.</p>"))
    assert blocks(page) == [("paragraph", 0, "Dentro, con bastante más texto.")]
    assert {reason for reason, _ in removed(page)} == {"navigation"}


def test_what_a_page_marks_as_its_main_content_is_its_content() -> None:
    page = read_one(
        HtmlReader(),
        html(
            "<div>Fuera</div><div><main><header>Cabecera</header><p>Dentro.</p>"
            f"<ul>{LINKS}</ul><nav>Índice</nav></main></div><p>Fuera</p>"
        ),
    )
    assert [text for _, _, text in blocks(page)][:2] == ["Cabecera", "Dentro."]
    assert removed(page) == [
        ("navigation", "Fuera"),
        ("navigation", "Índice"),
        ("navigation", "Fuera"),
    ]


def test_hidden_text_is_removed_without_cutting_the_paragraph() -> None:
    page = read_one(
        HtmlReader(),
        html("<p>uno <span hidden>x</span>dos</p><p style='display: none'>y</p><script>z</script>"),
    )
    assert blocks(page) == [("paragraph", 0, "uno dos")]
    assert removed(page) == [("hidden", "x"), ("hidden", "y")]


def test_title_date_and_author_of_a_web_page_are_metadata() -> None:
    head = "<title>Un  plan</title><meta name=author content=Ana>"
    head += "<meta property=article:published_time content=2024-03-01>"
    page = read_one(HtmlReader(), html("<p>x</p>", head))
    assert page.metadata == {
        "title": "Un plan",
        "date": "2024-03-01",
        "author": "Ana",
        "language": "es",
    }


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_the_encoding_of_a_web_page_is_found(encoding: str) -> None:
    content = "<p>El año pasado, mañana y la información de España. ¿Cómo está?</p>"
    declared = f"<meta charset={encoding}>" if encoding == "latin-1" else ""
    page = read_one(HtmlReader(), f"{declared}{content}".encode(encoding))
    assert page.text == content[3:-4]


def test_a_web_page_nested_too_deeply_is_refused() -> None:
    assert refusal(HtmlReader(), b"<div>" * (MAX_LEVELS + 1)) == TOO_DEEP
    assert len(read_one(HtmlReader(), b"<p>a<li>b" * (MAX_LEVELS + 1)).blocks) > MAX_LEVELS
    assert read_one(HtmlReader(), b"<div>" * MAX_LEVELS + b"x").text == "x"


def test_a_word_document_has_headings_lists_tables_and_equations() -> None:
    table = (
        "<w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc>"
        "</w:tr></w:tbl>"
    ).format(*map(paragraph, ("Mes", "Gasto", "Enero", "30")))
    equation = "<w:p><w:r><w:t>Sea </w:t></w:r><m:oMath><m:r><m:t>x=1</m:t></m:r></m:oMath></w:p>"
    display = "<m:oMathPara><m:oMath><m:r><m:t>y=2</m:t></m:r></m:oMath></m:oMathPara>"
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/></w:style>'
        for key, name in (("Ttulo1", "heading 1"), ("T", "Title"))
    )
    parts = docx_parts(
        paragraph("El plan", "T") + paragraph("Vivienda", "Ttulo1") + equation + display + table,
        styles=styles,
        header1=paragraph("Página de Ana"),
    )
    parts["word/_rels/document.xml.rels"] = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
        'relationships/styles" Target="styles.xml"/></Relationships>'
    )
    page = read_one(DocxReader(), archive(parts))
    assert blocks(page) == [
        ("heading", 1, "El plan"),
        ("heading", 1, "Vivienda"),
        ("paragraph", 0, "Sea x=1"),
        ("paragraph", 0, "y=2"),
        ("table_header", 0, "Mes\tGasto"),
        ("table_row", 0, "Enero\t30"),
    ]
    assert removed(page) == [("running_head", "Página de Ana")]


def test_hidden_text_of_a_word_document_is_removed_and_tables_hold_tables() -> None:
    def table(*lines: tuple[str, ...]) -> str:
        made = "".join(
            f"<w:tr>{''.join(f'<w:tc>{cell}</w:tc>' for cell in line)}</w:tr>" for line in lines
        )
        return f"<w:tbl>{made}</w:tbl>"

    inner = table((paragraph("dentro"), paragraph("otra"))) + paragraph("")
    hidden = "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>oculto</w:t></w:r></w:p>"
    shown = '<w:p><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>visible</w:t></w:r></w:p>'
    body = hidden + shown + table((paragraph("a"), paragraph("b")), (paragraph("1"), inner))
    page = read_one(DocxReader(), archive(docx_parts(body)))
    assert [(kind, text) for kind, _, text in blocks(page)] == [
        ("paragraph", "visible"),
        ("table_header", "a\tb"),
        ("table_row", "1\tdentro otra"),
    ]
    assert removed(page) == [("hidden", "oculto")]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"hola", DAMAGED),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", PROTECTED),
        (archive({"word/otro.xml": "<a/>"}), DAMAGED),
        (archive(docx_parts("") | {"word/document.xml": "<w:document"}), DAMAGED),
        (archive(docx_parts("") | {"word/x.xml": "<!DOCTYPE x []><x/>"}), ENTITIES),
        (archive(docx_parts("<w:p>" * 500)), TOO_DEEP),
        (archive(docx_parts("") | {"../x.xml": ""}), BAD_NAME),
    ],
)
def test_a_word_document_that_is_none_or_made_to_do_harm_is_refused(
    content: bytes | io.BytesIO, code: str
) -> None:
    assert refusal(DocxReader(), content) == code


MARKDOWN = """---
title: "Un plan"
date: 2024-03-01
---
# Plan

Texto de
dos líneas.
- uno
  sigue
  * dos
1. tres

Subrayado
---------

| Mes | Gasto |
|-----|------:|
| Enero | 3 |
```
# no es un título

```
## Fin
adiós"""


def test_markdown_has_headings_lists_tables_and_code() -> None:
    page = read_one(MarkdownReader(), MARKDOWN.encode())
    assert blocks(page) == [
        ("heading", 1, "# Plan"),
        ("paragraph", 0, "Texto de\ndos líneas."),
        ("list_item", 1, "- uno\n  sigue"),
        ("list_item", 2, "* dos"),
        ("list_item", 1, "1. tres"),
        ("heading", 2, "Subrayado\n---------"),
        ("table_header", 0, "| Mes | Gasto |\n|-----|------:|"),
        ("table_row", 0, "| Enero | 3 |"),
        ("code", 0, "```\n# no es un título\n\n```"),
        ("heading", 2, "## Fin"),
        ("paragraph", 0, "adiós"),
    ]
    assert [reason for reason, _ in removed(page)] == ["front_matter"]
    assert page.metadata == {"title": "Un plan", "date": "2024-03-01"}


def test_text_has_pages_and_paragraphs() -> None:
    one, two = TextReader().read(io.BytesIO("Uno\r\ndos.\r\n \r\nTres. \fCuatro, año".encode()))
    assert isinstance(one, Page)
    assert isinstance(two, Page)
    assert blocks(one) == [("paragraph", 0, "Uno\ndos."), ("paragraph", 0, "Tres.")]
    assert (two.number, blocks(two)) == (2, [("paragraph", 0, "Cuatro, año")])


def test_text_in_another_encoding_is_read_and_bytes_are_refused() -> None:
    text = "El año pasado, mañana y la información de España. ¿Cómo está?"
    assert read_one(TextReader(), text.encode("cp1252")).text == text
    assert refusal(TextReader(), b"a\0b") == DAMAGED


FILES: list[tuple[Callable[[], DocumentReader], bytes]] = [
    (HtmlReader, html("<main><p>a<table><tr><td>1<td>2</table></main><ul><li>b</ul>")),
    (MarkdownReader, MARKDOWN.encode()),
    (TextReader, b"a\n\nb"),
    (CsvReader, b'a,b\n"1,5",2\n'),
    (DocxReader, archive(docx_parts(paragraph("a"))).getvalue()),
    (WorkbookReader, archive(xlsx_parts(rows({"A1": "a", "B1": "=1"}))).getvalue()),
    (WorkbookReader, ods("<table:table-row/>").getvalue()),
]


@settings(deadline=None)
@given(st.sampled_from(FILES), st.data())
def test_a_damaged_file_is_read_or_refused_and_what_is_read_is_accounted_for(
    file: tuple[Callable[[], DocumentReader], bytes], data: st.DataObject
) -> None:
    reader, content = file
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 40)))
    damaged = content[:start] + data.draw(st.binary(max_size=40)) + content[end:]
    try:
        read = list(reader().read(io.BytesIO(damaged)))
    except InvalidSourceError:
        return
    pages = {item.number: item for item in read if isinstance(item, Page)}
    sections = list(sections_of(pages.values()))
    for section in sections:
        check_section(section, pages)
        assert "\0" not in section.text
    assert all(unaccounted(page, sections) == () for page in pages.values())
    assert all(item.reason for item in read if isinstance(item, PageFailure))
