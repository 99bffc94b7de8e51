"""Windows of sentences around passages, by hand."""

import pytest

from rag_resources.core.configuration import ContextConfig
from rag_resources.core.expansion import expand
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span

NOTE = "Uno. Dos.\r\nTres 😀. Cuatro. Cinco."


def around(before: int, after: int) -> ContextConfig:
    return ContextConfig(sentences_before=before, sentences_after=after)


def span_of(piece: str) -> Span:
    start = NOTE.index(piece)
    return Span(start, start + len(piece))


def expanded(pieces: list[str], config: ContextConfig) -> list[str]:
    windows = expand(NOTE, [span_of(piece) for piece in pieces], config)
    return [NOTE[window.start : window.end] for window in windows]


@pytest.mark.parametrize(
    ("piece", "config", "expected"),
    [
        ("Tres 😀.", around(0, 0), "Tres 😀."),
        ("Tres 😀.", around(1, 0), "Dos.\r\nTres 😀."),
        ("Tres 😀.", around(0, 1), "Tres 😀. Cuatro."),
        ("Tres 😀.", around(2, 2), NOTE),
        ("Uno.", around(3, 1), "Uno. Dos."),
        ("Cinco.", around(1, 3), "Cuatro. Cinco."),
        ("😀", around(0, 0), "Tres 😀."),
        ("Dos.\r\nTres", around(1, 1), "Uno. Dos.\r\nTres 😀. Cuatro."),
        ("\r\n", around(0, 0), "\r\n"),
        ("\r\n", around(1, 1), "Dos.\r\nTres 😀."),
    ],
)
def test_a_passage_is_widened_by_whole_sentences(
    piece: str, config: ContextConfig, expected: str
) -> None:
    assert expanded([piece], config) == [expected]


def test_passages_of_one_place_share_what_is_cut() -> None:
    cut: list[str] = []

    def counted(text: str) -> list[Span]:
        cut.append(text)
        return sentences(text)

    expand(NOTE, [span_of("Uno."), span_of("Cinco.")], around(0, 0), sentences=counted)
    assert cut == [NOTE]


def test_a_note_without_sentences_is_not_cut_whole() -> None:
    note = "palabra " * 500_000
    cut: list[int] = []

    def counted(text: str) -> list[Span]:
        cut.append(len(text))
        return [Span(0, len(text))]

    passage = Span(2_000_000, 2_000_100)
    (window,) = expand(note, [passage], around(2, 2), sentences=counted)
    assert window.start <= passage.start < passage.end <= window.end
    assert sum(cut) < 320_000
