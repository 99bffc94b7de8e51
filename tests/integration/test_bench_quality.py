"""The quality benchmarks on a question set of a few notes."""

import json
from pathlib import Path

import pytest

from benchmarks.bench_quality import main

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


def test_every_configuration_is_measured_with_every_note_length(
    question_set: Path, tmp_path: Path
) -> None:
    """Whatever one paragraph is asked for, words find it; the default is compared with it."""
    written = tmp_path / "tables.md"
    main([str(question_set), "--paragraphs", "1", "6", "--markdown", str(written)])
    tables = written.read_text("utf-8")
    headings = [line for line in tables.splitlines() if line.startswith("### ")]
    assert headings == [
        "### What was measured",
        "### Quality with 1 paragraph per note (6 notes, 6 chunks)",
        "### The default against the others with 1 paragraph per note",
        "### Quality with 6 paragraphs per note (1 notes, 1 chunks)",
        "### The default against the others with 6 paragraphs per note",
    ]
    assert "| fulltext | – | 1.000 .610–1.000 |" in tables
    assert tables.count("| hybrid_windows | ") == 2
    assert "Failed or answered in part: 0." in tables
