"""Workbooks and CSV files: cells as text, tables with their header, hostile files."""

import io
from datetime import date, datetime, time, timedelta
from pathlib import Path

import pytest

from rag_resources.core.documents import BlockKind, Page, PageFailure
from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.number_formats import day_text, formatted
from rag_resources.core.sections import sections_of
from rag_resources.core.sheets import cell_name
from rag_resources.documents.workbook import CsvReader, WorkbookReader
from tests.office_files import (
    BAD_NAME,
    DAMAGED,
    ENTITIES,
    PROTECTED,
    TOO_DEEP,
    archive,
    ods,
    rows,
    xlsx_parts,
)

DATA = Path(__file__).parents[1] / "data"
STYLES = (
    '<numFmts><numFmt numFmtId="164" formatCode="#,##0.00 &quot;€&quot;"/></numFmts>'
    '<cellStyleXfs><xf numFmtId="9"/></cellStyleXfs>'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="10"/><xf numFmtId="14"/>'
    "</cellXfs>"
)


def read_one(parts: dict[str, str]) -> Page:
    (page,) = WorkbookReader().read(archive(parts))
    assert isinstance(page, Page)
    return page


def cells(page: Page) -> list[tuple[str | None, str]]:
    return [(run.cells, page.text[run.start : run.end]) for b in page.blocks for run in b.runs]


def refusal(reader: WorkbookReader | CsvReader, file: io.BytesIO) -> str | None:
    with pytest.raises(InvalidSourceError) as caught:
        list(reader.read(file))
    return caught.value.msgid


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        (12.0, "General", "12"),
        (0.1 + 0.2, "General", "0,3"),
        (1e-7, "General", "0,0000001"),
        (1234.5, '#,##0.00 "€"', "1234,50 €"),
        (1234.5, "[$€-C0A] #,##0.00", "€ 1234,50"),
        (0.125, "0.0%", "12,5 %"),
        (1.005, "0.00", "1,01"),
        (-0.001, "0.00", "0,00"),
        (-5.5, "#,##0.00;[Red](#,##0.00)", "-5,50"),
        (3.0, "0.##", "3"),
        (0.5, "# ?/?", "0,5"),
        (1e300, "0", "1e+300"),
        (1_234_567.0, "#,##0,", "1234567"),
        (45_352.0, "mmm-yy", "2024-03-01"),
        (45_352.604, "dd/mm/yyyy hh:mm", "2024-03-01 14:29:46"),
        (0.5, "h:mm", "12:00"),
        (1.1, "[h]:mm", "26:24"),
        (1.0, "d/m/yyyy", "1900-01-01"),
        (-1.0, "d/m/yyyy", "-1"),
        (7.0, '"día" 0', "día 7"),
        (8_001.0, "00000", "08001"),
        (-5.25, "000.0", "-005,3"),
    ],
)
def test_a_number_is_written_as_its_format_shows_it(value: float, code: str, text: str) -> None:
    assert formatted(value, code) == text


def test_days_and_times_are_written_in_iso_8601() -> None:
    assert formatted(1.0, "d/m/yyyy", from_1904=True) == "1904-01-02"
    assert day_text(datetime(2024, 3, 1)) == day_text(date(2024, 3, 1)) == "2024-03-01"  # noqa: DTZ001
    assert day_text(time(9, 5)) == "09:05"
    assert day_text(timedelta(hours=-30, seconds=-5)) == "-30:00:05"


def test_numbers_of_an_old_workbook_have_their_formats_too() -> None:
    """Of each sheet, wherever its cells begin."""
    with (DATA / "formats.xls").open("rb") as file:
        costs, other = WorkbookReader().read(file)
    assert isinstance(costs, Page)
    assert isinstance(other, Page)
    assert cells(costs)[4:] == [
        ("A2", "2024-01-01"),
        ("B2", "1234,50 €"),
        ("C2", "12,5 %"),
        ("D2", "08001"),
        ("A3", "2024-02-01"),
        ("B3", "1300,00 €"),
        ("C3", "5,3 %"),
        ("D3", "12"),
    ]
    assert cells(other) == [("B3", "a"), ("C3", "b"), ("B4", "50 %"), ("C4", "7")]


def test_a_sheet_is_a_page_with_its_cells_formats_and_errors() -> None:
    content = rows(
        {"B1": "Gastos de 2024"},
        {"B2": "Mes", "C2": "Importe", "D2": "Cambio"},
        {"B3": "=45292@3", "C3": "=1234.5@1", "D3": "!#DIV/0!"},
        {"B4": "=45323@3", "C4": "=1300@1", "D4": "=0.0531@2"},
    )
    page = read_one(xlsx_parts(content, styles=STYLES))
    assert (page.number, page.sheet, page.has_tables) == (1, "Hoja 1", True)
    assert page.text == (
        "Gastos de 2024\nMes\tImporte\tCambio\n2024-01-01\t1234,50 €\t#DIV/0!\n"
        "2024-02-01\t1300,00 €\t5,31 %"
    )
    assert [block.kind for block in page.blocks] == [
        BlockKind.PARAGRAPH,
        BlockKind.TABLE_HEADER,
        BlockKind.TABLE_ROW,
        BlockKind.TABLE_ROW,
    ]
    assert cells(page)[-1] == ("D4", "5,31 %")
    (section,) = sections_of([page])
    assert section.heading_path == ("Hoja 1",)


def test_shared_strings_booleans_dates_and_readings() -> None:
    content = (
        '<sheetData><row r="4"><c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="b"><v>1</v></c>'
        '<c t="d"><v>2024-03-01T10:30:00</v></c><c t="str"><v>a_x000D_b</v></c>'
        '<c t="s"><v>9</v></c></row></sheetData>'
    )
    strings = "<si><r><t>Ca</t></r><r><t>sa</t></r></si><si><t>東</t><rPh><t>ひ</t></rPh></si>"
    page = read_one(xlsx_parts(content, strings=strings))
    expected = ["Casa", "東", "VERDADERO", "2024-03-01 10:30", "a b"]
    assert cells(page) == [(f"{'ABCDE'[at]}4", text) for at, text in enumerate(expected)]


def test_a_formula_that_was_never_calculated_is_shown_itself() -> None:
    cells = '<c r="A1" t="str"><v>Total</v></c><c r="B1"><f>SUM(B2:B3)</f></c>'
    content = f"<sheetData><row>{cells}</row></sheetData>"
    assert read_one(xlsx_parts(content)).text == "Total\t=SUM(B2:B3)"


def test_merged_cells_have_the_name_of_the_range_and_are_repeated_downwards() -> None:
    content = rows(
        {"A1": "Año", "B1": "Trimestre", "C1": "Gasto"},
        {"A2": "2023", "B2": "T1", "C2": "=5"},
        {"B3": "T2", "C3": "=6"},
    )
    page = read_one(xlsx_parts(f'{content}<mergeCells><mergeCell ref="A2:A3"/></mergeCells>'))
    assert page.text.endswith("2023\tT1\t5\n2023\tT2\t6")
    assert [name for name, text in cells(page) if text == "2023"] == ["A2:A3", "A2:A3"]


def test_tables_end_at_an_empty_row_and_numbers_alone_have_no_header() -> None:
    content = rows({"A1": "=1", "B1": "=2"}, {"A2": "=3", "B2": "=4"}, {"A3": ""}, {"A4": "Solo"})
    page = read_one(xlsx_parts(content))
    assert page.text == "1\t2\n3\t4\nSolo"
    assert {block.kind for block in page.blocks} == {BlockKind.TABLE_ROW}


def test_a_wide_table_is_cut_into_blocks_of_columns_that_repeat_the_first() -> None:
    header = {cell_name(1, column): f"c{column}" for column in range(1, 81)}
    values = {cell_name(2, column): f"={column}" for column in range(1, 81)}
    page = read_one(xlsx_parts(rows(header, values)))
    lines = page.text.split("\n")
    assert [line.split("\t")[0] for line in lines] == ["c1", "1"] * 3
    assert [len(line.split("\t")) for line in lines] == [40, 40, 40, 40, 2, 2]
    assert cells(page)[-2:] == [("A2", "1"), ("CB2", "80")]


def test_a_hidden_sheet_is_removed_and_a_damaged_one_fails_alone() -> None:
    parts = xlsx_parts(rows({"A1": "a"}), rows({"A1": "b"}), rows({"A1": "c"}), state="hidden")
    parts["xl/worksheets/sheet2.xml"] = "<worksheet>"
    first, second, third = WorkbookReader().read(archive(parts))
    assert isinstance(second, PageFailure)
    assert (second.number, second.reason.msgid) == (2, DAMAGED)
    assert isinstance(first, Page)
    assert isinstance(third, Page)
    assert [(r.reason, third.text[r.start : r.end]) for r in third.removed] == [("hidden", "c")]
    assert [section.text for section in sections_of([first, third])] == ["a"]


def test_a_cell_far_away_takes_no_memory_for_those_between() -> None:
    page = read_one(xlsx_parts(rows({"A1": "a"}, {"XFD1048576": "b"})))
    assert cells(page) == [("A1", "a"), ("XFD1048576", "b")]


HIDDEN = (
    '<office:automatic-styles><style:style style:name="out"><style:table-properties'
    ' table:display="false"/></style:style></office:automatic-styles>'
)


def ods_cell(text: str = "", inner: str = "", **attributes: str) -> str:
    """A cell; the attributes of values are of `office`, all others of `table`."""
    said = "".join(
        f' {"office" if "value" in key else "table"}:{key.replace("_", "-")}="{value}"'
        for key, value in attributes.items()
    )
    return f"<table:table-cell{said}>{inner}<text:p>{text}</text:p></table:table-cell>"


def test_an_open_document_is_read_as_it_is_shown() -> None:
    row = "".join(
        [
            ods_cell("1.000,50 €", value="1000.5", value_type="currency"),
            ods_cell("#DIV/0!", value_type="string"),
            ods_cell("1/3/24", value_type="date", date_value="2024-03-01"),
            ods_cell("", value_type="boolean", boolean_value="true"),
            ods_cell(
                "uno<text:s/>dos",
                "<office:annotation><text:p>nota</text:p></office:annotation>",
                number_columns_repeated="2",
            ),
        ]
    )
    merged = ods_cell("Total", number_rows_spanned="2") + ods_cell("5", value_type="float")
    table = (
        f'<table:table-row table:number-rows-repeated="2">{row}</table:table-row>'
        '<table:table-row table:number-rows-repeated="1048570"><table:table-cell/>'
        f"</table:table-row><table:table-row>{merged}</table:table-row>"
        f"<table:table-row><table:covered-table-cell/>{ods_cell('6')}</table:table-row>"
    )

    (page,) = WorkbookReader().read(ods(table))

    assert isinstance(page, Page)
    shown = ["1.000,50 €", "#DIV/0!", "2024-03-01", "VERDADERO", "uno dos", "uno dos"]
    assert cells(page) == [
        *((f"{'ABCDEF'[n]}{line}", text) for line in (1, 2) for n, text in enumerate(shown)),
        *(("A1048573:A1048574", "Total"), ("B1048573", "5")),
        *(("A1048573:A1048574", "Total"), ("B1048574", "6")),
    ]


def test_a_hidden_sheet_of_an_open_document_is_removed_and_endless_repeats_are_refused() -> None:
    (page,) = WorkbookReader().read(
        ods(f"<table:table-row>{ods_cell('a')}</table:table-row>", HIDDEN, style="out")
    )
    assert isinstance(page, Page)
    assert [removal.reason for removal in page.removed] == ["hidden"]
    cell = ods_cell("a", number_columns_repeated="16384")
    rows_ = f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row>'
    assert (
        refusal(WorkbookReader(), ods(rows_))
        == "It gives more than {megabytes} MB of text. Split the file."
    )


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ja"><!ENTITY b "&a;&a;">]>'


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ({"xl/sharedStrings.xml": f"{LAUGHS}<sst>&b;</sst>"}, ENTITIES),
        ({"xl/worksheets/sheet1.xml": f"{LAUGHS}<worksheet/>"}, ENTITIES),
        ({"xl/styles.xml": "<a>" * 500}, TOO_DEEP),
        ({"../../etc/passwd": "x"}, BAD_NAME),
        ({"/etc/passwd": "x"}, BAD_NAME),
        ({"xl/workbook.xml": "<workbook"}, DAMAGED),
    ],
)
def test_a_workbook_made_to_do_harm_is_refused(parts: dict[str, str], code: str) -> None:
    file = archive(xlsx_parts(rows({"A1": "a"})) | parts)
    assert refusal(WorkbookReader(), file) == code


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_resources.documents.archives.MAX_BYTES", 1_000_000)
    file = archive({"xl/media/image.png": b"\0" * 2_000_000})
    assert file.getbuffer().nbytes < 10_000
    assert (
        refusal(WorkbookReader(), file)
        == "The file would take more than {megabytes} MB uncompressed or has more than {entries} "
        "parts. If that is expected, raise EXTRACTION__MEMORY_MB or split it."
    )


def test_what_is_no_workbook_is_refused() -> None:
    assert refusal(WorkbookReader(), io.BytesIO(b"hola")) == DAMAGED
    ole = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    assert refusal(WorkbookReader(), io.BytesIO(ole + bytes(4096))) == DAMAGED
    encrypted = ole + "EncryptedPackage".encode("utf-16-le")
    assert refusal(WorkbookReader(), io.BytesIO(encrypted)) == PROTECTED
    manifest = {"META-INF/manifest.xml": "<m><encryption-data/></m>"}
    assert refusal(WorkbookReader(), archive(manifest)) == PROTECTED


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("Mes;Año;Gasto\nEnero;2024;1,5\n", "utf-8"),
        ("Mes;Año;Gasto\nEnero;2024;1,5\n", "cp1252"),
        ("Mes\tAño\tGasto\nEnero\t2024\t1,5\n", "utf-16"),
        ('Mes,Año,Gasto\r\nEnero,2024,"1,5"\r\n', "utf-8-sig"),
        ("Mes|Año|Gasto\nEnero|2024|1,5", "utf-8"),
    ],
)
def test_csv_is_read_whatever_its_delimiter_and_encoding(content: str, encoding: str) -> None:
    (page,) = CsvReader().read(io.BytesIO(content.encode(encoding)))
    assert isinstance(page, Page)
    assert page.text == "Mes\tAño\tGasto\nEnero\t2024\t1,5"
    assert page.blocks[0].kind is BlockKind.TABLE_HEADER
    assert cells(page)[-1] == ("C2", "1,5")


def test_bytes_that_are_no_text_are_refused_as_csv() -> None:
    assert refusal(CsvReader(), io.BytesIO(b"a,b\n\0,\xff")) == DAMAGED
