"""Where Spanish sentences end: abbreviations, hard cases, Markdown, white space, long texts."""

from pathlib import Path

import pytest

from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span, is_blank

CASES = Path(__file__).parents[1] / "data" / "sentences.txt"


def hard_cases() -> list[str]:
    """The lines of `tests/data/sentences.txt` that are texts."""
    lines = CASES.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("=="))
    return [line for line in lines[first:] if not line.startswith("==")]


def marked(line: str) -> tuple[str, list[str]]:
    """The text of a line, and its sentences."""
    text = line.replace(" ‖ ", " ").replace("‖", "").replace("⏎", "\n")
    return text, [part.replace("⏎", "\n").strip() for part in line.split("‖")]


def pieces(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentences(text)]


def test_hard_cases_are_cut_where_a_reader_cuts_them() -> None:
    """At least .99 of the cases have exactly the marked borders."""
    cases = hard_cases()
    wrong = [line for line in cases if pieces(marked(line)[0]) != marked(line)[1]]
    assert len(cases) >= 200
    assert len(wrong) <= 0.01 * len(cases), "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "Vive en el n.º 12 de la calle Mayor desde hace años.",
        "La reunión es a las 9 a. m. en la sala grande.",
        "La reunión acaba a las 5 p. m. y luego cenamos.",
        "Son aprox. 30 personas.",
        "Vino el Sr. García con la Sra. Pérez y el Dr. Ruiz.",
        "Trae fruta, p. ej. Manzanas rojas.",
        "Viajó a EE. UU. en 2020.",
        "Véase la pág. 12 del cap. 3 y el art. 5 de la ley.",
        "Llama al tel. 600 123 456 de la Avda. Constitución.",
        "Cuesta 3.500,50 euros.",
        "Compra pan, leche, etc. antes de las ocho.",
        "Nació en feb. 1990 en un pueblo.",
        "Pesa máx. 20 kg. por persona.",
        "Fdo. Ana, de la calle Sta. Engracia.",
    ],
)
def test_the_full_stop_of_an_abbreviation_ends_no_sentence(text: str) -> None:
    assert pieces(text) == [text]
    assert pieces(f"{text} Después vino otra cosa.") == [text, "Después vino otra cosa."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Son las 9 a. m. Luego salimos.", ["Son las 9 a. m.", "Luego salimos."]),
        ("¿Qué? ¡Sí! Claro.", ["¿Qué?", "¡Sí!", "Claro."]),
        ("Uno.\r\nDos.\r\n\r\nTres", ["Uno.", "Dos.", "Tres"]),
        ("- uno\n- dos\n- tres", ["- uno", "- dos", "- tres"]),
        ("Vive en la Avda.\n\nOtra línea.", ["Vive en la Avda.", "Otra línea."]),
        ("Sin punto final", ["Sin punto final"]),
        ("  \n Hola.  \t", ["Hola."]),
        ("", []),
        (" \r\n\u00a0", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_only_white_space_is_outside_sentences() -> None:
    text = "Uno.  Dos;\u2028tres\u00a0… ¿cuatro?\x85cinco\x1c. «Seis.» "
    outside = list(text)
    for span in sentences(text):
        outside[span.start : span.end] = " " * span.length
    assert is_blank("".join(outside))


@pytest.mark.parametrize("run", [".", "…?!", ".)", "¿", "(", '"', "«[“"])
def test_a_run_of_marks_takes_no_longer_than_its_length(run: str) -> None:
    """Trying each part of a run by itself took hours for this many."""
    text = run * (300_000 // len(run))
    assert sentences(text) == [Span(0, len(text))]
    assert len(sentences(f"Hola. {text} Adiós.")) in (2, 3)


def test_a_long_text_has_the_sentences_of_its_paragraphs() -> None:
    paragraphs = [f"El Sr. Gil llegó a las {n}. «¿Qué más?», dijo.\n\n" for n in range(1_000)]
    expected = [
        paragraph[span.start : span.end]
        for paragraph in paragraphs
        for span in sentences(paragraph)
    ]
    text = "".join(paragraphs)
    assert [text[span.start : span.end] for span in sentences(text)] == expected
