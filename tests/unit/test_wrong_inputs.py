"""Wrong inputs of every kind: the message names the place, the cause and the way out."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import yaml

from rag_resources.configurations import load_configurations
from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.golden import parse_golden
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
    ({**NAMED, "retrieval": {"strategi": "hybrid"}}, ["strategi", "strategy"]),
    ({**NAMED, "retrieval": {"strategy": "magia"}}, ["retrieval.strategy", "«magia»"]),
    ({**NAMED, "retrieval": {"top_k": {"final": 0}}}, ["retrieval.top_k.final", "0"]),
    ({**NAMED, "retrieval": {"top_k": {"final": 51}}}, ["retrieval.top_k.final", "51"]),
    (
        {**NAMED, "retrieval": {"top_k": {"retrieval": "muchos"}}},
        ["top_k.retrieval", "«muchos»"],
    ),
    ({**NAMED, "retrieval": {"top_k": 5}}, ["retrieval.top_k"]),
    ({**NAMED, "retrieval": {"fusion": {"method": "suma"}}}, ["fusion.method", "«suma»"]),
    ({**NAMED, "retrieval": {"diversity_weight": 2}}, ["diversity_weight", "2"]),
    ({**NAMED, "retrieval": {"reranking": {"weight": -1}}}, ["reranking.weight", "-1"]),
    ({**NAMED, "retrieval": {"reranking": {"method": "ojo"}}}, ["reranking.method", "«ojo»"]),
    (
        {**NAMED, "retrieval": {"retrievers": {"magia": {"weight": 1}}}},
        ["retrievers", "magia"],
    ),
    (
        {**NAMED, "retrieval": {"retrievers": {"semantic": {"weight": 0}}}},
        ["retrieval"],
    ),
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


NOTE = UUID(int=1)
GOOD = {
    "query": "¿Qué pasó?",
    "relevantNotes": ["n"],
    "expectedAnswer": "Nada.",
    "category": "factual",
    "difficulty": 1,
}
GOLDENS: list[tuple[Any, list[str]]] = [
    (7, ["entries"]),
    ({"preguntas": []}, ["entries"]),
    ([7], ["entrada 1", "objeto JSON"]),
    ([{**GOOD, "query": ""}], ["entrada 1", "query"]),
    ([{**GOOD, "query": 7}], ["entrada 1", "query"]),
    ([{**GOOD, "query": "x" * 5000}], ["entrada 1", "query"]),
    ([{**GOOD, "relevantNotes": []}], ["relevantNotes", "vacío"]),
    ([{**GOOD, "relevantNotes": "n"}], ["relevantNotes", "n"]),
    ([{**GOOD, "relevantNotes": ["otra"]}], ["«otra»", "no existe"]),
    ([{**GOOD, "expectedAnswer": " "}], ["expectedAnswer"]),
    ([{**GOOD, "expectedAnswer": "\0"}], ["expectedAnswer"]),
    ([{**GOOD, "category": None}], ["category", "falta"]),
    ([{**GOOD, "category": "fácil"}], ["category", "«fácil»", "factual"]),
    ([{**GOOD, "difficulty": 6}], ["difficulty", "6", "de 1 a 5"]),
    ([{**GOOD, "difficulty": "2"}], ["difficulty", '"2"', "de 1 a 5"]),
    ([{**GOOD, "difficulty": True}], ["difficulty", "de 1 a 5"]),
    ([{**GOOD, "tags": "a"}], ["tags"]),
    ([{**GOOD, "id": "x"}], ["id", "«x»"]),
    ([GOOD, {**GOOD, "query": "¿que paso?"}], ["entrada 2", "ya está: 1", "acentos"]),
    ([{**GOOD, "places": [{"note": "n", "text": "no está"}]}], ["places[0]", "no está"]),
]


@pytest.mark.parametrize(
    ("raw", "said"), GOLDENS, ids=[str(index) for index in range(len(GOLDENS))]
)
def test_golden_files(raw: Any, said: list[str]) -> None:
    with pytest.raises(InvalidGoldenDatasetError) as refused:
        parse_golden(
            json.loads(json.dumps(raw)),
            origin="preguntas.json",
            resolve_note=lambda name: NOTE if name == "n" else None,
            content_of=lambda _: "El contenido de la nota.",
        )
    for part in ("preguntas.json", *said):
        assert part in refused.value.message
    assert not FOREIGN.search(refused.value.message)


def test_the_date_of_a_note_is_read_in_every_spelling(tmp_path: Path) -> None:
    for name in ("date", "created_at", "createdAt", "fecha"):
        (tmp_path / f"{name}.md").write_text(f"---\n{name}: 2025-03-14\n---\nHola.\n")
    dates = {getattr(note, "created_at", None) for note in iter_source(tmp_path)}
    assert dates == {datetime(2025, 3, 14, tzinfo=UTC)}
