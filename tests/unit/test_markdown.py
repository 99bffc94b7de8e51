"""Marks of Markdown in what people are shown."""

import pytest

from rag_resources.core.markdown import marks_of, without_marks


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Acta\n\n## Dudas\nNadie.", "Acta\n\nDudas\nNadie."),
        (
            "Se propone **cambiar las tejas** y *La plaza*.",
            "Se propone cambiar las tejas y La plaza.",
        ),
        ("***Muy*** __claro__ y _así_.", "Muy claro y así."),
        ("(**Roa**) «*Las Eras*»", "(Roa) «Las Eras»"),
        ("2 * 3 * 4 = 24, 2*3*4, a**b", "2 * 3 * 4 = 24, 2*3*4, a**b"),
        ("* uno\n* dos", "* uno\n* dos"),
        ("plan_de_obra_2025.pdf y __init__ no", "plan_de_obra_2025.pdf y init no"),
        ("Va [[Marta Gil]] con [[Arquitectura|el plano]].", "Va Marta Gil con el plano."),
        ("[[]] y [[roto] y a[1][2]", "[[]] y [[roto] y a[1][2]"),
        ("C# y #etiqueta, nota #3", "C# y #etiqueta, nota #3"),
        ("una * suelta, otra ** suelta", "una * suelta, otra ** suelta"),
        ("dos\n*líneas\nno*", "dos\n*líneas\nno*"),
        ("", ""),
    ],
)
def test_what_people_are_shown_has_no_marks(text: str, shown: str) -> None:
    assert without_marks(text) == shown


def test_marks_are_told_by_their_offsets() -> None:
    """So that ranges of the text stay where they are."""
    assert marks_of("# A\n**b**") == {0, 1, 4, 5, 7, 8}
