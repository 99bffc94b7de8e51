"""Windows of chunks, by example; their properties are `tests/property/test_windows_properties`."""

import pytest
from pydantic import ValidationError

from rag_resources.core.windows import WindowsConfig, cut_windows, window_text

TEXT = "Uno llega. Dos sale.  Tres espera. Cuatro duerme."


@pytest.mark.parametrize(
    ("sentences", "stride", "expected"),
    [
        (1, 1, ["Uno llega.", "Dos sale.", "Tres espera.", "Cuatro duerme."]),
        (
            2,
            1,
            ["Uno llega. Dos sale.", "Dos sale.  Tres espera.", "Tres espera. Cuatro duerme."],
        ),
        (3, 2, ["Uno llega. Dos sale.  Tres espera.", "Tres espera. Cuatro duerme."]),
        (4, 2, [TEXT]),
        (9, 1, [TEXT]),
    ],
)
def test_windows_of_four_sentences(sentences: int, stride: int, expected: list[str]) -> None:
    windows = cut_windows(TEXT, WindowsConfig(sentences=sentences, stride=stride))
    assert [TEXT[window.start : window.end] for window in windows] == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("La lavadora", "La lavadora. Se rompió."),
        ("¿Qué  pasó?\n", "¿Qué pasó? Se rompió."),
        (" ", "Se rompió."),
    ],
)
def test_the_title_comes_first_as_a_sentence(title: str, expected: str) -> None:
    assert window_text(title, "Se rompió.") == expected


def test_a_stride_that_leaves_sentences_out_is_refused() -> None:
    with pytest.raises(ValidationError, match="stride"):
        WindowsConfig(sentences=2, stride=3)
