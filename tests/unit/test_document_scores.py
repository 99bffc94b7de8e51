"""Scores of extracted documents, with values computed by hand."""

from collections import Counter

import pytest

from benchmarks.document_scores import f1, found_relations, score_text, true_relations

TRUTH = [
    {"t": "h", "text": "Un título"},
    {"t": "p", "text": "Este párrafo tiene más de veinte “letras”."},
    {"t": "table", "rows": [["Partida", "2024"], ["Total", "9,1"]]},
]


def test_a_perfect_extraction_scores_one() -> None:
    text = 'Un título\n\nEste párrafo tiene\nmás de veinte "letras".\n\nPartida | 2024\nTotal | 9,1'

    scores = score_text(TRUTH, text, text)

    assert (scores.recall, scores.precision, scores.order) == (1, 1, 1)
    assert (scores.paragraphs, scores.table_rows) == (1, 1)


def test_lost_and_moved_text_costs() -> None:
    text = "Partida Total 2024 9,1 Un título Este párrafo tiene más de veinte"

    scores = score_text(TRUTH, text, text)

    assert scores.recall == pytest.approx(13 / 14)
    assert scores.precision == 1
    assert scores.order == pytest.approx(8 / 14)
    assert (scores.paragraphs, scores.table_rows) == (0, 0)


def test_neighbours_of_cells_are_those_of_icdar() -> None:
    """A cell over two columns stands above both; empty cells are passed over."""
    cells = [(0, 0, "Gasto", 'end-col="1"'), (1, 0, "2024", ""), (1, 1, "2025", "")]
    xml = "".join(
        f'<cell start-row="{row}" start-col="{column}" {more}><content>{text}</content></cell>'
        for row, column, text, more in cells
    )
    expected = true_relations(f"<document><region>{xml}</region></document>")
    found = found_relations([[["Gasto", ""], ["2024", "2025"]]])

    assert expected == Counter(
        [("gasto", "2024", "below"), ("gasto", "2025", "below"), ("2024", "2025", "right")]
    )
    assert f1(expected, found) == (1, pytest.approx(2 / 3), pytest.approx(0.8))
