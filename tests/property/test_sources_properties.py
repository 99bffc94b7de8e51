"""Sources of notes: content is preserved exactly, and any bytes can be handled."""

import csv
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from rag_resources.core.text import is_blank
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.ingestion.sources import ARCHIVE, READERS, iter_source

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
CONTENTS = TEXTS.filter(lambda text: not is_blank(text))
STRUCTURED = st.text(
    st.sampled_from(list("---\n\n::  ,;\"\"''[]{}&*!|>%@`#?~\\\r\t\0\ufeffañ😀012.ex_dtT+Z")),
    max_size=60,
)
FRAGMENTS = st.sampled_from(
    [
        "id: ",
        "tags: ",
        "title: ",
        "created_at: ",
        "!!int ",
        "!!float ",
        "!!timestamp ",
        "!!set ",
        "!!omap ",
        "!!pairs ",
        "!!binary ",
        "!!bool ",
        "!!str ",
        "!x ",
        "&a ",
        "*a",
        "<<: ",
        "- ",
        "2025-01-01",
        "10:00:00 +99:99",
        "0x_",
        "0b_",
        "1:1:1",
        ".inf",
        "= ",
        "\n",
        " ",
        "[",
        "]",
        "{",
        "}",
        ",",
        ": ",
        "? ",
        "x",
        "'",
        '"',
        "9" * 400,
        "\\ud800",
        "\x85",
        "\u2028",
        "\ud7ff",
    ]
)


@contextmanager
def source(name: str, raw: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(raw)
        yield path


def contents(name: str, raw: bytes) -> list[str]:
    with source(name, raw) as path:
        records = list(iter_source(path))
    assert all(isinstance(record, NoteRecord) for record in records), records
    return [record.content for record in records if isinstance(record, NoteRecord)]


def check_storable(raw: bytes) -> None:
    """Whatever the bytes, every kind of file gives records that PostgreSQL can store."""
    for suffix in (*READERS, ARCHIVE):
        with source(f"nota{suffix}", raw) as path:
            records = list(iter_source(path))
        for record in records:
            assert isinstance(record, NoteRecord | RejectedRecord)
            if isinstance(record, RejectedRecord):
                assert record.reason.encode()
                assert record.location.startswith("nota")
                continue
            metadata = json.dumps(dict(record.metadata), allow_nan=False, ensure_ascii=False)
            texts = [record.external_id, record.title, record.content, metadata, *record.tags]
            assert all("\0" not in text for text in texts)
            assert all(text.encode() is not None for text in texts)
            assert not is_blank(record.content)
            assert record.external_id
            assert record.created_at.tzinfo is not None


@given(CONTENTS)
@example("---\nid: b\n---\nx")
@example("\n\nx\r\n\r\n")
@example("x\r")
@example("\ufeffx\u2028\x85\x1c")
def test_40_markdown_content_is_untouched(content: str) -> None:
    # A lone \r before the last \n would be half of that line end.
    end = "\r\n" if content.endswith("\r") else "\n"
    raw = f"---\nid: a\n---\n{content}{end}".encode()
    assert contents("nota.md", raw) == [content]


@given(st.lists(CONTENTS, min_size=1, max_size=5), st.booleans())
@example(["x\u2028\x85\x1c\r\ny"], False)
def test_40_jsonl_content_is_untouched(texts: list[str], ensure_ascii: bool) -> None:
    rows = [
        json.dumps({"id": i, "text": text}, ensure_ascii=ensure_ascii)
        for i, text in enumerate(texts)
    ]
    assert contents("notas.jsonl", "\n".join(rows).encode()) == texts


@given(
    st.lists(CONTENTS, min_size=1, max_size=5),
    st.sampled_from(",;"),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_40_csv_content_is_untouched(
    texts: list[str], delimiter: str, end: str, quoting: int
) -> None:
    file = StringIO(newline="")
    # QUOTE_MINIMAL quotes what the line terminator holds, so a lone \r asks for \r\n.
    writer = csv.writer(
        file,
        delimiter=delimiter,
        lineterminator="\r\n" if quoting == csv.QUOTE_MINIMAL else end,
        quoting=quoting,  # type: ignore[arg-type]
    )
    writer.writerow(["id", "content"])
    writer.writerows(enumerate(texts))
    assert contents("notas.csv", file.getvalue().encode()) == texts


@given(st.binary(max_size=400))
@example(b"\xff\xfe")
@example(b"\xed\xa0\x80")
@example(b"text\n\xef\xbb\xbf\n\r\r")
def test_arbitrary_bytes_never_raise(raw: bytes) -> None:
    check_storable(raw)


@given(STRUCTURED, STRUCTURED)
def test_arbitrary_structure_never_raises(head: str, body: str) -> None:
    check_storable(f"---\n{head}\n---\n{body}".encode())
    check_storable(f"id,content\n{head}\n{body}".encode())


@given(st.lists(FRAGMENTS, max_size=12), CONTENTS)
def test_arbitrary_front_matter_never_raises(fragments: list[str], body: str) -> None:
    check_storable(f"---\n{''.join(fragments)}\n---\n{body}".encode())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    ),
    st.sampled_from(["id", "title", "text", "tags", "created_at", "x", "data", "paragraphs"]),
)
def test_arbitrary_json_never_raises(value: object, field: str) -> None:
    rows = ({field: value}, {"text": "x", field: value}, value, {"data": [{"paragraphs": value}]})
    for row in rows:
        check_storable(json.dumps(row).encode())
