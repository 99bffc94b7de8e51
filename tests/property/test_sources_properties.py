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
from rag_resources.core.types import NoteRecord
from rag_resources.ingestion.sources import iter_source

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
CONTENTS = TEXTS.filter(lambda text: not is_blank(text))


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
