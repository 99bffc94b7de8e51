"""Windows of chunks, by example; their properties are `tests/property/test_windows_properties`."""

import pytest
from pydantic import ValidationError

from rag_resources.core.windows import WindowsConfig, window_text


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
