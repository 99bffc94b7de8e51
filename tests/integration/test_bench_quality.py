"""The quality benchmarks on a question set of a few notes."""

import json
from pathlib import Path

import pytest

from tests.benchmarks import bench_windows
from tests.benchmarks.bench_quality import main

TOPICS = {
    "la insulina": "La insulina se guarda en la nevera y se estropea con el calor.",
    "el ascensor": "El ascensor no funciona desde el apagón y la junta votó arreglarlo.",
    "la mermelada": "Lola hizo mermelada de naranja amarga con mucho azúcar y poca agua.",
    "la tortuga": "La tortuga se ha roto una pata y la veterinaria la ha vendado.",
    "el réquiem": "Ensayamos el réquiem de Fauré en la iglesia con órgano y soprano.",
    "la gotera": "La gotera del baño sigue ahí y el fontanero no contesta desde el lunes.",
}


@pytest.fixture
def question_set(tmp_path: Path) -> Path:
    """One article, a paragraph and a question for each topic."""
    paragraphs = [
        {
            "context": text,
            "qas": [
                {
                    "id": topic,
                    "question": f"¿Qué se apuntó de {topic}?",
                    "answers": [{"text": text, "answer_start": 0}],
                }
            ],
        }
        for topic, text in TOPICS.items()
    ]
    path = tmp_path / "preguntas.json"
    document = {"data": [{"title": "Diario", "paragraphs": paragraphs}]}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_every_note_length_is_measured_once_and_compared(
    question_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten paragraphs make the same notes as six, so they are one length."""
    written = tmp_path / "tables.md"
    lengths = ["--paragraphs", "1", "10", "6"]
    main([str(question_set), *lengths, "--models", "use_multilingual", "--markdown", str(written)])
    tables = written.read_text("utf-8")
    headings = [line for line in tables.splitlines() if line.startswith("### ")]
    assert headings == [
        "### What was measured",
        "### Quality with 1 paragraph per note (6 notes, 6 chunks)",
        "### Quality with 6 or 10 paragraphs per note (1 notes, 1 chunks)",
        "### The default against the others with 1 paragraph per note",
        "### The default against the others with 6 or 10 paragraphs per note",
        "### Ways of fusing: MRR@10 over all questions",
        "### What half of the questions choose, and what the others say of it",
    ]
    assert "| questions | 6 (not usable: 0) |" in tables
    for name in ("hybrid_weighted", "baseline", "semantic"):
        assert f"| {name} | use_multilingual | 1.000 " in tables
    assert "| fulltext | – | 1.000 .610–1.000 |" in tables
    assert "answered in part: 0." in tables
    shown = capsys.readouterr()
    assert "Quality with 6 or 10 paragraphs per note" in shown.out
    assert "6 or 10 paragraphs per note: fulltext: MRR@10 1.000" in shown.err


def test_every_way_of_cutting_and_weighing_windows_is_measured(
    question_set: Path, tmp_path: Path
) -> None:
    written = tmp_path / "tables.md"
    asked = ["--paragraphs", "1", "--cuts", "1/1", "--markdown", str(written)]
    bench_windows.main([str(question_set), *asked])
    tables = written.read_text("utf-8")
    assert "### Windows on preguntas.json, 1 paragraph a note, all: 6 questions" in tables
    measured = [bench_windows.BASE, *bench_windows.WITHOUT_WINDOWS]
    measured += [f"1/1 {variant}" for variant in bench_windows.WITH_WINDOWS]
    for label in measured:
        assert f"| {label} | 1.000 " in tables
