"""Hyphens at line ends go away if the typesetter put them in."""

import pytest

from rag_resources.core.hyphenation import LineEnd, Vocabulary, line_end

VOCABULARY = Vocabulary.of(
    ["El desarrollo del plan teórico-práctico, con su parte y su todo.", "Una conse-\ncuencia"]
)


@pytest.mark.parametrize(
    ("line", "following", "end"),
    [
        ("del desa-", "rrollo local", LineEnd.WITHOUT_HYPHEN),
        ("el plan teórico-", "práctico", LineEnd.AS_IT_IS),
        ("la parte-", "todo", LineEnd.AS_IT_IS),
        ("una palabra descono-", "cida", LineEnd.WITHOUT_HYPHEN),
        ("una conse\u00ad", "cuencia", LineEnd.WITHOUT_HYPHEN),
        ("Castilla-", "La Mancha", LineEnd.AS_IT_IS),
        ("el DESA-", "RROLLO", LineEnd.WITHOUT_HYPHEN),
        ("véase http://ejemplo.es/uno/", "dos.pdf", LineEnd.AS_IT_IS),
        ("véase http://ejemplo.es/uno/", "Dos.pdf", LineEnd.AS_IT_IS),
        ("hombres y/", "Mujeres", LineEnd.SPACE),
        ("véase http://ejemplo.es/uno/-", "dos.pdf", LineEnd.WITHOUT_HYPHEN),
        ("el plan", "de la ciudad", LineEnd.SPACE),
        ("entre 2010 -", "y 2012", LineEnd.SPACE),
        ("el plan 2026\u2013", "2030 de vivienda", LineEnd.AS_IT_IS),
        ("la bomba GX-", "600", LineEnd.AS_IT_IS),
        ("el 2026-", "11-27", LineEnd.AS_IT_IS),
        ("entre 2010 \u2013", "2012", LineEnd.SPACE),
        ("lo dijo\u2013", "3 veces", LineEnd.SPACE),
    ],
)
def test_line_ends(line: str, following: str, end: LineEnd) -> None:
    assert line_end(line, following, VOCABULARY) is end
