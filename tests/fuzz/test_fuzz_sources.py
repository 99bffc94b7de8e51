"""Sources of notes: good records are read whatever is beside them; bad ones are named."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.core.text import is_blank
from rag_resources.core.timestamps import parse_timestamp
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.database.pool import Database
from rag_resources.ingestion.ingest import ingest
from rag_resources.ingestion.records import MAX_ID_BYTES
from rag_resources.ingestion.sources import READERS, iter_source
from tests.fuzz.bounds import assert_told, bounded
from tests.fuzz.hostile import any_texts, heaps, json_texts, mutated

pytestmark = pytest.mark.fuzz

Record = NoteRecord | RejectedRecord

FRONT_MATTER = """---
id: diario/1
title: "Año: nuevo"
tags: [casa, 'dos palabras', 012]
created_at: 2024-05-01 10:30:00 +02:00
lugar: {nombre: Orriols, piso: 3, coordenadas: [39.49, -0.36]}
plantilla: &p {x: 1}
copia: {<<: *p, y: 0x10, z: 1e3, f: 2024-02-30, t: !!set {a, b}}
---
# Título

El ascensor no funciona. «¿Qué pasa?»
"""
ROW = {
    "id": "a1",
    "title": "Título",
    "text": "El ascensor no funciona.\n¿Qué pasa?",
    "tags": ["casa"],
    "createdAt": "2024-05-01T10:30:00.5Z",
    "lugar": {"piso": 3, "x": [1.5, None, True]},
}
TABLE = """id;content;created_at;tags
a1;"El ""ascensor"";
roto.";2024-05-01;casa,barrio
a2;Otro día.;;
"""
VALID: Mapping[str, bytes] = {
    ".md": FRONT_MATTER.encode(),
    ".jsonl": f"{json.dumps(ROW)}\n{json.dumps(ROW | {'id': 'a2'})}\n".encode(),
    ".csv": TABLE.encode(),
}
YAML_PIECES = [
    *("? ", ": ", "- ", "&a ", "*a", "<<: ", "<<: [*a, *a]", "!!int ", "!!float ", "!!set "),
    *("!!omap ", "!!binary ", "!!timestamp ", "!!null ", "!!str ", "!!merge ", "!x ", "|", ">"),
    *("%YAML 9", "...", "{", "}", "[", "]", ",", "\n", "  ", "a", "id", "tags", "'", '"'),
    *("\\ud800", "0x" + "f" * 3_600, "2024-02-30", "10:00", "1:1:1", ".nan", "="),
    *("12345678901234567890", "0b_", "created_at"),
]
FIELDS = ["id", "title", "text", "content", "tags", "created_at", "lugar", "\0", "\ud800", "x" * 99]


@contextmanager
def folder(files: Mapping[str, bytes]) -> Iterator[Path]:
    with TemporaryDirectory() as path:
        for name, raw in files.items():
            (Path(path) / name).write_bytes(raw)
        yield Path(path)


def read(path: Path) -> list[Record]:
    with bounded():
        return list(iter_source(path))


def check(records: list[Record], names: Mapping[str, bytes]) -> None:
    """Check that notes can be stored, and that rejections name their file and a reason."""
    for record in records:
        if isinstance(record, RejectedRecord):
            assert_told(record.reason)
            assert re.sub(r":\d+$| \(.*\)$", "", record.location) in names
            continue
        metadata = json.dumps(dict(record.metadata), allow_nan=False, ensure_ascii=False)
        texts = [record.external_id, record.title, record.content, metadata, *record.tags]
        assert all("\0" not in text and text.encode() is not None for text in texts)
        assert not is_blank(record.content)
        assert 0 < len(record.external_id.encode()) <= MAX_ID_BYTES
        assert record.created_at.utcoffset() is not None


def ids(records: list[Record]) -> set[str]:
    return {record.external_id for record in records if isinstance(record, NoteRecord)}


def files() -> st.SearchStrategy[tuple[str, bytes]]:
    """A name with any suffix, and a mutated file of that kind or of another, or any bytes."""
    everything = list(VALID.values())
    kinds = [
        st.tuples(st.just(f"mala{suffix}"), mutated([VALID.get(suffix, VALID[".md"])], everything))
        for suffix in READERS
    ]
    texts = heaps().map(lambda text: text.encode("utf-8", "surrogatepass"))
    names = st.sampled_from([f"mala{suffix}" for suffix in READERS])
    return st.one_of(*kinds, st.tuples(names, st.binary(max_size=300) | texts))


@given(files())
def test_a_mutated_file_beside_good_ones_is_named_and_they_come_through(
    case: tuple[str, bytes],
) -> None:
    name, raw = case
    good = {f"buena{suffix}": content for suffix, content in VALID.items()}
    del good["buena.csv"]  # The same ids as the lines.
    good["buena.jsonl"] = b'{"id": "beside", "text": "x"}\n'
    good["buena.md"] = b"Hola."
    with folder(good | {name: raw}) as path:
        records = read(path)
    check(records, good | {name: raw})
    assert ids(records) >= {"beside", "buena", "buena/0-0", "buena/1-0"}


@given(st.lists(st.sampled_from(YAML_PIECES), max_size=25).map("".join) | any_texts())
def test_any_front_matter_gives_a_note_or_a_reason(front_matter: str) -> None:
    raw = f"---\n{front_matter}\n---\nHola.".encode("utf-8", "surrogatepass")
    with folder({"mala.md": raw, "otra.md": b"Adi\xc3\xb3s."}) as path:
        records = read(path)
    check(records, {"mala.md": raw})
    assert len(records) == 2
    assert "otra" in ids(records)


@given(
    st.lists(
        st.one_of(
            json_texts(),
            mutated([json.dumps(ROW).encode()]).map(lambda raw: raw.decode("latin-1")),
            st.tuples(st.sampled_from(FIELDS), json_texts()).map(
                lambda pair: f'{{"text": "x", {json.dumps(pair[0])}: {pair[1]}}}'
            ),
        ),
        max_size=3,
    )
)
def test_the_lines_around_bad_ones_come_through(bad: list[str]) -> None:
    first, last = '{"id": "first one", "text": "x"}', '{"id": "last one", "text": "y"}'
    raw = "\n".join([first, *bad, last]).encode("utf-8", "surrogatepass")
    with folder({"notas.jsonl": raw}) as path:
        records = read(path / "notas.jsonl")
    check(records, {"notas.jsonl": raw})
    assert ids(records) >= {"first one", "last one"}
    lines = raw.split(b"\n")
    for record in records:
        if isinstance(record, RejectedRecord):
            number = int(record.location.rpartition(":")[2])
            assert 1 < number < len(lines)


@given(
    st.lists(any_texts().map(lambda text: text.replace('"', "").replace(",", ";;")), max_size=3),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_the_rows_around_bad_ones_come_through(bad: list[str], end: str) -> None:
    rows = ["id,content", "first one,x", *bad, "last one,y"]
    raw = (end.join(rows) + end).encode("utf-8", "surrogatepass")
    with folder({"notas.csv": raw}) as path:
        records = read(path / "notas.csv")
    check(records, {"notas.csv": raw})
    assert ids(records) >= {"first one", "last one"}


@given(any_texts())
def test_any_date_is_read_in_time_or_refused(text: str) -> None:
    for value in (text, f"2024-05-01{text}", f"2024-05-01T10:30:00{text}"):
        with bounded():
            moment = parse_timestamp(value)
        assert moment is None or moment.utcoffset() is not None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files())
def test_what_a_source_gives_can_be_stored(database: Database, case: tuple[str, bytes]) -> None:
    name, raw = case
    with folder({name: raw}) as path, bounded():
        report = ingest(database, iter_source(path), tenant="ana", source="fuzz")
    with database.transaction() as connection:
        stored = connection.execute("SELECT count(*) FROM notes").fetchone()
        connection.execute("DELETE FROM notes")
    assert stored == (report.written,)
