"""Wrong inputs of every kind: the message names the place, the cause and the way out."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from rag_resources.configurations import load_configurations
from rag_resources.core.types import RejectedRecord
from rag_resources.ingestion.sources import iter_source
from tests.command_line import Outcome, call_rag, isolate

Rag = Callable[..., Outcome]
FOREIGN = re.compile(r"\bNone\b|Traceback|\w+Error\b|is not|must be|<class")
"""What must never reach a user."""


@pytest.fixture
def rag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Rag:
    """Call `rag` in a folder with a few files, without a database."""
    isolate(monkeypatch, tmp_path)
    (tmp_path / "vacia").mkdir()
    (tmp_path / "notas").mkdir()
    (tmp_path / "notas" / "a.md").write_text("Hola a todos.")
    (tmp_path / "x.pdf").write_text("x")
    return lambda *arguments: call_rag(monkeypatch, capsys, *arguments)


COMMANDS: list[tuple[str, list[str]]] = [
    ("retreive x", ["«retreive»", "retrieve", "rag --help"]),
    ("cualquiera", ["«cualquiera»", "rag --help"]),
    ("retrieve", ["«PREGUNTA»", "rag retrieve --help"]),
    ("retrieve ''", ["La pregunta está vacía", "Escribe qué quieres buscar"]),
    ("retrieve '¿?'", ["ninguna palabra que buscar", "Añade de qué trata"]),
    ("retrieve gata --top-k 0", ["entre 1 y 50", "0"]),
    ("retrieve gata --top-k uno", ["«--top-k»", "«uno»"]),
    ("retrieve gata --topk 3", ["«--topk»", "--top-k?"]),
    ("retrieve gata perro", ["perro", "entre comillas"]),
    ("retrieve gata --filter since=ayer", ["since", "«ayer»", "2025-03-14"]),
    ("retrieve gata --language de", ["«de»", "es, fr, en"]),
    ("retrieve gata --set fusion", ["--set", "«fusion»", "nombre=valor"]),
    ("retrieve gata --filter x", ["--filter", "«x»", "nombre=valor"]),
    ("ingest no-existe", ["no-existe", "Comprueba"]),
    ("ingest x.pdf", ["x.pdf", ".md"]),
    ("init vacia", ["vacia", ".md"]),
    ("experiment no.yaml", ["no.yaml", "No existe no.yaml"]),
    ("migration estatus", ["«estatus»", "status"]),
]


@pytest.mark.parametrize(("line", "said"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_command_lines(rag: Rag, line: str, said: list[str], tmp_path: Path) -> None:
    import shlex

    done = rag(*shlex.split(line))
    assert (done.code, done.out) == (2, "")
    for part in said:
        assert part in done.err
    assert not FOREIGN.search(done.err)
    assert not (tmp_path / "home").exists()


NAMED = {"name": "x", "description": "d"}
YAMLS: list[tuple[dict[str, Any] | str, list[str]]] = [
    ("", ["x.yaml"]),
    ("name: [", ["x.yaml", "YAML"]),
    ("- lista", ["x.yaml"]),
    ("name: x\nname: y", ["x.yaml", "name"]),
    ({"retrieval": {}}, ["name", "falta"]),
    ({"name": "otro", "description": "d", "retrieval": {}}, ["otro"]),
    ({"name": "x", "rol": "candidate"}, ["rol", "role"]),
    ({**NAMED, "role": "jefe"}, ["role", "«jefe»", "candidate"]),
]


@pytest.mark.parametrize(
    ("content", "said"), YAMLS, ids=[str(content)[:40] for content, _ in YAMLS]
)
def test_configuration_files(
    tmp_path: Path, content: dict[str, Any] | str, said: list[str]
) -> None:
    text = content if isinstance(content, str) else yaml.safe_dump(content)
    (tmp_path / "x.yaml").write_text(text)
    message = "\n".join(load_configurations((tmp_path,)).problems)
    for part in said:
        assert part in message
    assert not FOREIGN.search(message)


CSVS: list[tuple[str | bytes, str, list[str]]] = [
    ("id,titulo\n1,a\n", "x.csv", ["content", "id, titulo"]),
    ("id,content,id\n1,a,2\n", "x.csv", ["«id»", "repetida"]),
    ("id,content\n1\n", "x.csv:2", ["1 campos", "2"]),
    ("id,content\n1,a,b\n", "x.csv:2", ["3 campos", "2"]),
    ('id,content\n1,"a\n', "x.csv:2", ["comillas"]),
    ("id,content\n1,\n", "x.csv:2", ["content", "falta este campo"]),
    ("id,content\n1,   \n", "x.csv:2", ["content", "vacío"]),
    ("id,content,fecha\n1,a,ayer\n", "x.csv:2", ["fecha", "«ayer»", "2025-03-14"]),
    ("id,content,created_at\n1,a,2025-02-30\n", "x.csv:2", ["created_at", "2025-02-30"]),
    ("id,content,created_at\n1,a,1741900000\n", "x.csv:2", ["created_at", "1741900000"]),
    ("id,content,expires_at\n1,a,luego\n", "x.csv:2", ["expires_at", "«luego»"]),
    ("id,content\n1,a\n1,b\n", "x.csv:3", ["«1»", "x.csv:2", "Cambia uno"]),
    (f"id,content\n{'x' * 2000},a\n", "x.csv:2", ["id", "1024"]),
    (f"id,content,tags\n1,a,{'x' * 600}\n", "x.csv:2", ["etiqueta", "larga"]),
    ("", "x.csv", ["content"]),
    ("\n\n", "x.csv", ["content"]),
    ("solo\n", "x.csv", ["content", "solo"]),
    ("id|content\n1|a\n", "x.csv", ["content", "id|content"]),
]


@pytest.mark.parametrize(("text", "place", "said"), CSVS, ids=[repr(row[0][:30]) for row in CSVS])
def test_csv_files(tmp_path: Path, text: str | bytes, place: str, said: list[str]) -> None:
    (tmp_path / "x.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    rejected = [item for item in iter_source(tmp_path) if isinstance(item, RejectedRecord)]
    assert [item.location for item in rejected] == [place]
    for part in said:
        assert part in rejected[0].reason
    assert not FOREIGN.search(rejected[0].reason)
