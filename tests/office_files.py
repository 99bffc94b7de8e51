"""Small office files made by hand for tests."""

import io
import zipfile
from collections.abc import Mapping

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"

DAMAGED = (
    "It cannot be read as {kind}: it is damaged or of another type. Open it with its program and "
    "save it again, or ask for another copy."
)
PROTECTED = "The file is protected by a password. Save a copy without it."
ENTITIES = (
    "The part {part} declares a DTD or entities, which are not read. Save the file again with an "
    "office program."
)
TOO_DEEP = "It has elements inside others more than {levels} deep, the maximum."
BAD_NAME = (
    "The part “{part}” has a name that is not allowed, with “..” or an absolute path. The file is "
    "not read."
)
"""Codes of the refusals."""


def archive(parts: Mapping[str, str | bytes]) -> io.BytesIO:
    """A ZIP archive of the parts."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
    made.seek(0)
    return made


def relationships(*targets: tuple[str, str]) -> str:
    """A part of relationships: the kind and the target of each, with ids `r1`, `r2`…."""
    lines = (
        f'<Relationship Id="r{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, start=1)
    )
    return f'<Relationships xmlns="{_PACKAGE}">{"".join(lines)}</Relationships>'


def xlsx_parts(
    *sheets: str, strings: str = "", styles: str = "", state: str = "visible"
) -> dict[str, str]:
    """The parts of a workbook whose sheets have the given content; the last is in `state`."""
    names = [f"Hoja {number}" for number in range(1, len(sheets) + 1)]
    listed = "".join(
        f'<sheet name="{name}" sheetId="{number}" r:id="r{number}"'
        f' state="{state if number == len(sheets) else "visible"}"/>'
        for number, name in enumerate(names, start=1)
    )
    related = [
        ("worksheet", f"worksheets/sheet{number}.xml") for number in range(1, len(names) + 1)
    ]
    return {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relationships(("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">'
        f"<sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relationships(
            *related, ("sharedStrings", "sharedStrings.xml"), ("styles", "styles.xml")
        ),
        "xl/sharedStrings.xml": f'<sst xmlns="{_MAIN}">{strings}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}">{styles}</styleSheet>',
        **{
            f"xl/worksheets/sheet{number}.xml": f'<worksheet xmlns="{_MAIN}">{content}</worksheet>'
            for number, content in enumerate(sheets, start=1)
        },
    }


def rows(*rows: Mapping[str, str]) -> str:
    """The data of a sheet; a value is `text`, `=number`, `=number@style` or `!error`."""
    made = []
    for row in rows:
        cells = "".join(_cell(name, value) for name, value in row.items())
        made.append(f"<row>{cells}</row>")
    return f"<sheetData>{''.join(made)}</sheetData>"


def _cell(name: str, value: str) -> str:
    if value.startswith("="):
        number, _, style = value[1:].partition("@")
        return f'<c r="{name}" s="{style or 0}"><v>{number}</v></c>'
    if value.startswith("!"):
        return f'<c r="{name}" t="e"><v>{value[1:]}</v></c>'
    return f'<c r="{name}" t="inlineStr"><is><t>{value}</t></is></c>'


def docx_parts(body: str, **others: str) -> dict[str, str]:
    """The parts of a Word document with a body; others are further parts of `word/`."""
    overrides = (
        '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
        'officedocument.wordprocessingml.document.main+xml"/>'
    )
    return {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
        f'content-types">{overrides}</Types>',
        "_rels/.rels": relationships(("officeDocument", "word/document.xml")),
        "word/document.xml": f'<w:document xmlns:w="{_WORD}" xmlns:m="http://schemas.'
        f'openxmlformats.org/officeDocument/2006/math"><w:body>{body}</w:body></w:document>',
        **{
            f"word/{name}.xml": f'<w:part xmlns:w="{_WORD}">{content}</w:part>'
            for name, content in others.items()
        },
    }


def paragraph(text: str, style: str = "") -> str:
    """A paragraph of a Word document."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def ods(table: str, styles: str = "", *, style: str = "") -> io.BytesIO:
    """An OpenDocument spreadsheet with a table `Hoja` of the given content and style."""
    office = "urn:oasis:names:tc:opendocument:xmlns"
    names = "".join(
        f' xmlns:{name}="{office}:{space}:1.0"'
        for name, space in (
            ("office", "office"),
            ("table", "table"),
            ("text", "text"),
            ("style", "style"),
            ("number", "datastyle"),
        )
    )
    return archive(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": f'<m:manifest xmlns:m="{office}:manifest:1.0"/>',
            "content.xml": f"<office:document-content{names}>{styles}<office:body>"
            f'<office:spreadsheet><table:table table:name="Hoja" table:style-name="{style}">'
            f"{table}</table:table></office:spreadsheet></office:body>"
            "</office:document-content>",
        }
    )
