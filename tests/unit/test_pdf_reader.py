"""What is read from PDF files: order, structure, places, and what is not shown."""

from hashlib import sha256
from io import BytesIO
from typing import Any

import pytest

from rag_resources.core.documents import Page, PageFailure, Route
from rag_resources.core.errors import InvalidSourceError
from rag_resources.documents.pdf import REVISION
from rag_resources.languages.messages import _
from tests.office_files import DAMAGED, PROTECTED
from tests.pdf_files import (
    HEIGHT,
    PROSE,
    WIDTH,
    draw_lines,
    draw_picture,
    kinds,
    pdf_of,
    read,
    read_one,
    wrapped,
)


def test_headings_paragraphs_and_lists_are_told_apart() -> None:
    def draw(canvas: Any) -> None:
        canvas.setFont("Helvetica-Bold", 18)
        canvas.drawString(70, HEIGHT - 80, "1. Plan de movilidad")
        canvas.setFont("Helvetica", 10)
        top = draw_lines(canvas, wrapped(PROSE, 90), 70, 110)
        top = draw_lines(canvas, ["• Primera medida", "• Segunda medida"], 80, top + 10)
        canvas.setFont("Helvetica-Bold", 10)
        canvas.drawString(70, HEIGHT - top - 14, "Presupuesto")
        canvas.setFont("Helvetica", 10)
        draw_lines(canvas, wrapped(PROSE, 90), 70, top + 34)

    page = read_one(draw)

    assert kinds(page) == [
        ("heading", "1. Plan de movilidad"),
        ("paragraph", PROSE),
        ("list_item", "• Primera medida"),
        ("list_item", "• Segunda medida"),
        ("heading", "Presupuesto"),
        ("paragraph", PROSE),
    ]
    assert page.blocks[0].level < page.blocks[4].level
    assert page.route is Route.TEXT


def test_paragraphs_without_space_between_them_are_told_apart_by_indent_or_short_lines() -> None:
    def draw(canvas: Any) -> None:
        first, *others = wrapped(PROSE, 88)
        top = draw_lines(canvas, [first], 85, 80)
        top = draw_lines(canvas, others, 70, top)
        top = draw_lines(canvas, [first], 85, top)
        top = draw_lines(canvas, others, 70, top)
        draw_lines(canvas, ["Corta.", *wrapped(PROSE, 88)], 70, top + 30)

    assert kinds(read_one(draw)) == [
        ("paragraph", PROSE),
        ("paragraph", PROSE),
        ("paragraph", "Corta."),
        ("paragraph", PROSE),
    ]


def test_columns_are_read_one_after_the_other_also_if_drawn_line_by_line() -> None:
    left, right = wrapped(PROSE, 45), wrapped(PROSE.upper(), 38)

    def draw(canvas: Any) -> None:
        canvas.setFont("Helvetica-Bold", 16)
        canvas.drawString(120, HEIGHT - 80, "Un título sobre las dos columnas de la página")
        canvas.setFont("Helvetica", 10)
        for number in range(max(len(left), len(right))):
            for x, lines in ((60, left), (310, right)):
                if number < len(lines):
                    canvas.drawString(x, HEIGHT - 120 - 12 * number, lines[number])

    page = read_one(draw)

    assert [text for _, text in kinds(page)] == [
        "Un título sobre las dos columnas de la página",
        PROSE,
        PROSE.upper(),
    ]
    assert page.has_multiple_columns


ROWS = [
    ["Partida", "2024", "2025"],
    ["Transporte público", "1.250,50", "1.400,00"],
    ["Carriles para bicicletas", "310,00", "520,75"],
    ["Total", "1.560,50", "1.920,75"],
]


def draw_table(canvas: Any, *, rules: bool) -> None:
    for number, row in enumerate(ROWS):
        canvas.setFont("Helvetica-Bold" if number == 0 else "Helvetica", 10)
        for x, cell in zip((75, 255, 355), row, strict=True):
            canvas.drawString(x, HEIGHT - 115 - 20 * number, cell)
    if rules:
        canvas.grid([70, 250, 350, 450], [HEIGHT - 100 - 20 * n for n in range(5)])


@pytest.mark.parametrize("rules", [True, False])
def test_tables_become_rows_of_cells(rules: bool) -> None:
    page = read_one(lambda canvas: draw_table(canvas, rules=rules))

    assert page.has_tables
    assert kinds(page) == [
        ("table_header", "Partida | 2024 | 2025"),
        ("table_row", "Transporte público | 1.250,50 | 1.400,00"),
        ("table_row", "Carriles para bicicletas | 310,00 | 520,75"),
        ("table_row", "Total | 1.560,50 | 1.920,75"),
    ]
    assert [len(block.runs) for block in page.blocks] == [3, 3, 3, 3]
    cell = page.blocks[1].runs[1]
    assert cell.box is not None
    assert page.text[cell.start : cell.end] == "1.250,50 |"
    assert 245 < cell.box.left < 260


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_a_rotated_page_is_read_as_it_is_shown(rotation: int) -> None:
    # The file has the page as it lies: reportlab swaps its sides.
    sideways = rotation % 180 > 0

    def draw(canvas: Any) -> None:
        canvas.setPageRotation(rotation)
        canvas.translate(0, (WIDTH - HEIGHT) * sideways)
        draw_lines(canvas, wrapped(PROSE, 80), 70, 80)

    def draw_upright(canvas: Any) -> None:
        canvas.setPageRotation(rotation)
        canvas.translate(*{90: (HEIGHT, 0), 180: (WIDTH, HEIGHT), 270: (0, WIDTH)}[rotation])
        canvas.rotate(rotation)
        draw_lines(canvas, wrapped(PROSE, 80), 70, 80)

    turned = read_one(draw)
    assert kinds(turned) == [("paragraph", PROSE)]
    upright = read_one(draw_upright)
    assert kinds(upright) == [("paragraph", PROSE)]
    shown = upright.blocks[0].runs[0].box
    assert shown is not None
    assert shown.bottom - shown.top == pytest.approx(10, abs=0.2)
    assert shown.left == pytest.approx(70, abs=1)


def test_what_nobody_sees_is_removed_with_its_reason() -> None:
    def draw(canvas: Any) -> None:
        draw_lines(canvas, wrapped(PROSE, 90), 70, 80)
        canvas.drawString(-400, 300, "fuera de la página")
        text = canvas.beginText(70, 300)
        text.setTextRenderMode(3)
        text.textLine("invisible")
        text.setTextRenderMode(0)
        canvas.drawText(text)
        canvas.setFillColorRGB(1, 1, 1)
        canvas.drawString(70, 200, "blanco sobre blanco")
        canvas.setFillColorRGB(0, 0, 0.5)
        canvas.rect(60, 90, 200, 40, fill=1)
        canvas.setFillColorRGB(1, 1, 1)
        canvas.drawString(70, 100, "blanco sobre azul")

    page = read_one(draw)

    assert kinds(page) == [("paragraph", PROSE), ("paragraph", "blanco sobre azul")]
    removed = {r.reason: page.text[r.start : r.end] for r in page.removed}
    assert removed == {
        "off_page": "fuera de la página",
        "hidden": "invisible blanco sobre blanco",
    }
    assert page.left_out == {"off_page": 15, "hidden": 26}


def test_hyphens_at_line_ends_go_if_the_word_exists_joined() -> None:
    def draw(canvas: Any) -> None:
        draw_lines(
            canvas,
            [
                "El desarrollo sostenible de la región exige inversiones; por eso, el desa-",
                "rrollo del plan teórico-práctico se hará por fases, según el plan teórico-",
                "práctico que se aprobó. La depura-",
                "dora se amplía.",
            ],
            70,
            80,
        )

    page = read_one(draw)

    assert [(page.text[r.start : r.end], r.reason) for r in page.removed] == [("-\n", "hyphen")] * 2
    kept = page.text.replace("-\n", "")
    assert "el desarrollo del plan" in kept
    assert "plan teórico-práctico que" in kept
    assert "La depuradora se amplía" in kept, "its halves are no words"


def test_a_page_with_only_an_image_needs_ocr_and_an_empty_one_does_not() -> None:
    scanned, empty = read(pdf_of(draw_picture, lambda canvas: None))

    assert isinstance(scanned, Page)
    assert isinstance(empty, Page)
    assert (scanned.route, scanned.notices) == (Route.NONE, ("PAGE_NEEDS_OCR",))
    assert scanned.has_images
    assert (empty.route, empty.notices, empty.text) == (Route.NONE, (), "")


def test_text_recognised_behind_a_scan_is_read() -> None:
    def draw(canvas: Any) -> None:
        draw_picture(canvas)
        text = canvas.beginText(70, 700)
        text.setTextRenderMode(3)
        text.textLine("Acta de la sesión")
        canvas.drawText(text)

    page = read_one(draw)

    assert (page.route, page.text) == (Route.OCR, "Acta de la sesión")


def test_encrypted_damaged_and_foreign_files_are_refused() -> None:
    encrypted = pdf_of(lambda canvas: canvas.drawString(1, 1, "a"), encrypt="clave")
    with pytest.raises(InvalidSourceError) as refused:
        read(encrypted)
    assert refused.value.msgid == PROTECTED
    for damaged in (b"", b"%PDF-1.7\n%%EOF", b"hola " * 100):
        with pytest.raises(InvalidSourceError) as refused:
            read(BytesIO(damaged))
        assert refused.value.msgid == DAMAGED


def test_a_damaged_page_fails_alone() -> None:
    file = pdf_of(*(lambda canvas: canvas.drawString(70, 700, "Buena") for __ in range(3)))
    data = file.getvalue()
    kids = data.index(b"/Kids [") + len(b"/Kids [")
    second = data[kids:].split()[3]
    broken = data.replace(b"\n" + second + b" 0 obj\n<<", b"\n" + second + b" 0 obj\n[(", 1)
    assert broken != data

    pages = read(BytesIO(broken))

    assert [type(page) for page in pages] == [Page, PageFailure, Page]
    failure = pages[1]
    assert isinstance(failure, PageFailure)
    assert (failure.number, failure.reason) == (
        2,
        _("Page {number} of the PDF cannot be read: it is damaged. The others are read.").format(
            number=2
        ),
    )


def test_bullets_that_are_drawn_mark_the_items_of_a_list() -> None:
    def draw(canvas: Any) -> None:
        top = draw_lines(canvas, wrapped(PROSE, 90), 70, 80)
        for item in ("Primera medida, que ocupa", "Segunda medida"):
            canvas.circle(75, HEIGHT - top + 3, 1.4, fill=item.startswith("Primera"))
            top = draw_lines(canvas, [item], 84, top)

    assert kinds(read_one(draw)) == [
        ("paragraph", PROSE),
        ("list_item", "Primera medida, que ocupa"),
        ("list_item", "Segunda medida"),
    ]


def test_clipped_text_is_removed() -> None:
    def draw(canvas: Any) -> None:
        canvas.drawString(70, 700, "Visible")
        canvas.saveState()
        path = canvas.beginPath()
        path.rect(60, 100, 100, 50)
        canvas.clipPath(path, stroke=0)
        canvas.drawString(70, 120, "Dentro")
        canvas.drawString(70, 300, "Cortado")
        canvas.restoreState()

    page = read_one(draw)

    assert [text for _, text in kinds(page)] == ["Visible", "Dentro"]
    assert page.left_out == {"clipped": 7}


def pdf_of_objects(*objects: str) -> BytesIO:
    """A PDF of objects as they stand, numbered from 1; the first is the catalogue."""
    data = "%PDF-1.7\n"
    offsets = []
    for number, text in enumerate(objects, start=1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{text}\nendobj\n"
    start = len(data)
    data += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    data += "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    data += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    return BytesIO(data.encode("latin-1"))


def test_an_inherited_crop_box_does_not_cut_the_head_of_the_page() -> None:
    """pypdfium2 takes it for Letter, which is lower than A4."""
    content = "BT /F 10 Tf 70 830 Td (Cabecera) Tj 0 -780 Td (Pie) Tj 0 -45 Td (Fuera) Tj ET"
    (page,) = read(
        pdf_of_objects(
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 700 900]"
            " /CropBox [50 20 645 842] >>",
            "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        )
    )

    assert isinstance(page, Page)
    assert [text for _, text in kinds(page)] == ["Cabecera", "Pie"]
    box = page.blocks[0].runs[0].box
    assert box is not None
    assert (box.left, box.bottom) == (pytest.approx(20), pytest.approx(14))
    assert page.left_out == {"off_page": 5}


def test_letters_in_the_wrong_encoding_are_repaired_and_others_stay() -> None:
    def draw(canvas: Any) -> None:
        canvas.drawString(70, 700, "La educaciÃ³n en EspaÃ±a: inversiÃ³n y «calidad»")
        canvas.drawString(70, 600, "Ñandú, pingüino, “comillas”, Ávila")

    page = read_one(draw)

    assert [text for _, text in kinds(page)] == [
        "La educación en España: inversión y «calidad»",
        "Ñandú, pingüino, “comillas”, Ávila",
    ]


def test_the_marks_of_notes_are_apart_from_their_words() -> None:
    def draw(canvas: Any) -> None:
        canvas.drawString(70, 700, "El desarrollo")
        end = 70 + canvas.stringWidth("El desarrollo")
        canvas.setFont("Helvetica", 6)
        canvas.drawString(end, 704, "3")
        canvas.setFont("Helvetica", 10)
        canvas.drawString(end + 4, 700, "de la región")

    assert read_one(draw).text == "El desarrollo 3 de la región"


def test_a_document_is_cleaned_as_a_whole() -> None:
    def draw(number: int) -> Any:
        def page(canvas: Any) -> None:
            canvas.drawString(70, HEIGHT - 30, "Plan de movilidad")
            draw_lines(canvas, wrapped(f"{number * 7} {PROSE}", 80), 70, 200)
            canvas.drawCentredString(300, 30, f"{number} | Página")

        return page

    pages = read(pdf_of(*map(draw, range(1, 4))))

    for number, page in enumerate(pages, start=1):
        assert isinstance(page, Page)
        assert kinds(page) == [("paragraph", f"{number * 7} {PROSE}")]
        assert [(page.text[r.start : r.end], r.reason) for r in page.removed] == [
            ("Plan de movilidad", "running_head"),
            (f"{number} | Página", "page_number"),
        ]


def test_a_changed_reading_raises_the_revision() -> None:
    """If this fails, pages are read in another way: raise `REVISION`, and change the digest."""

    def draw(canvas: Any) -> None:
        draw_table(canvas, rules=False)
        draw_lines(canvas, wrapped(PROSE, 45), 60, 250)
        draw_lines(canvas, wrapped(PROSE.upper(), 38), 310, 250)

    page = read_one(draw)
    read_as = [(*block, page.has_multiple_columns) for block in kinds(page)]
    digest = sha256(repr(read_as).encode()).hexdigest()[:16]

    assert (REVISION, digest) == (4, "9626439fb79b53c6")


def test_letters_past_the_first_plane_are_whole() -> None:
    """PDFium gives each of them as two characters, as UTF-16 does."""
    codes = (
        "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <ff> "
        "endcodespacerange 1 beginbfchar <78> <d835dc65> endbfchar endcmap end"
    )
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 5 0 R>>"
    show = "BT /F 12 Tf 70 700 Td (hola x) Tj ET"
    parts = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1/MediaBox[0 0 595 842]>>",
        f"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F {font}>>>>>>",
        *(f"<</Length {len(text)}>>stream\n{text}\nendstream" for text in (show, codes)),
    ]
    objects = "".join(f"{n} 0 obj\n{part}\nendobj\n" for n, part in enumerate(parts, start=1))
    file = f"%PDF-1.4\n{objects}trailer<</Root 1 0 R/Size {len(parts) + 1}>>\n%%EOF"

    (page,) = read(BytesIO(file.encode()))

    assert isinstance(page, Page)
    assert page.text.endswith("\N{MATHEMATICAL ITALIC SMALL X}")


def test_accents_drawn_over_their_letters_are_joined_to_them() -> None:
    """As old TeX fonts do."""
    content = "BT /F 10 Tf 70 700 Td [(educaci) (\xb4) 430 (on espa) (\x98) 390 (nola)] TJ ET"
    (page,) = read(
        pdf_of_objects(
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 /MediaBox [0 0 595 842] >>",
            "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        )
    )

    assert isinstance(page, Page)
    assert page.text == "educación española"


def test_headings_are_measured_by_the_text_of_the_document() -> None:
    """On a page with a table in small letters, or with only a title, most letters are no text."""

    def text(canvas: Any) -> None:
        draw_lines(canvas, wrapped(f"{PROSE} {PROSE}", 90), 70, 80)

    def title(canvas: Any) -> None:
        canvas.setFont("Helvetica", 20)
        canvas.drawString(70, 500, "Segunda parte")

    def table(canvas: Any) -> None:
        draw_lines(canvas, wrapped(PROSE, 90), 70, 80)
        canvas.setFont("Helvetica", 7)
        for row in range(30):
            for column in range(6):
                canvas.drawString(70 + 80 * column, 600 - 12 * row, f"1.{row:03}.{column:03},00")

    pages = read(pdf_of(text, title, table))

    found = [[kind for kind, _ in kinds(page)] for page in pages if isinstance(page, Page)]
    assert found == [["paragraph"], ["heading"], ["paragraph", *["table_row"] * 30]]


def test_minutes_keep_head_form_and_agreements_apart() -> None:
    def draw(canvas: Any) -> None:
        canvas.drawString(60, HEIGHT - 40, "Ayuntamiento de Villanueva")
        canvas.drawRightString(540, HEIGHT - 40, "Secretaría General")
        canvas.setFont("Helvetica-Bold", 14)
        canvas.drawCentredString(300, HEIGHT - 80, "Acta de la sesión ordinaria")
        canvas.setFont("Helvetica", 10)
        form = ("Fecha:", "12 de marzo"), ("Lugar:", "Salón"), ("Hora:", "18:30"), ("Voz:", "Ana")
        for number, (name, value) in enumerate(form):
            canvas.drawString(60, HEIGHT - 115 - 14 * number, name)
            canvas.drawString(150, HEIGHT - 115 - 14 * number, value)
        top = 210.0
        for number in (1, 2):
            top = draw_lines(canvas, wrapped(f"{number}.º {PROSE}", 90), 60, top) + 8

    assert kinds(read_one(draw)) == [
        ("paragraph", "Ayuntamiento de Villanueva Secretaría General"),
        ("heading", "Acta de la sesión ordinaria"),
        ("table_row", "Fecha: | 12 de marzo"),
        ("table_row", "Lugar: | Salón"),
        ("table_row", "Hora: | 18:30"),
        ("table_row", "Voz: | Ana"),
        ("list_item", f"1.º {PROSE}"),
        ("list_item", f"2.º {PROSE}"),
    ]


def test_what_is_filled_in_a_form_is_text_beside_its_label() -> None:
    def draw(canvas: Any) -> None:
        canvas.drawString(70, 700, "Titular de la licencia:")
        canvas.acroForm.textfield(value="Amaia Zubiri", x=220, y=694, width=200, height=18)
        canvas.drawString(70, 660, "Exento:")
        canvas.acroForm.checkbox(checked=True, x=220, y=656, size=14)

    assert read_one(draw).text.splitlines() == [
        "Titular de la licencia: Amaia Zubiri",
        "",
        "Exento: ☒",
    ]
