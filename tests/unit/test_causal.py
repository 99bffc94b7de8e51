"""Causal statements are found by their markers."""

import pytest

from rag_resources.core.causal import Relation, event_key, find_statements
from rag_resources.core.text import Span


def said(text: str) -> list[tuple[str, str, str]]:
    """Cause, relation and effect of every statement of a text."""
    return [
        (text[s.cause.start : s.cause.end], s.relation.value, text[s.effect.start : s.effect.end])
        for s in find_statements(text)
    ]


@pytest.mark.parametrize(
    ("text", "cause", "relation", "effect"),
    [
        (
            "No fuimos porque llovía mucho.",
            "llovía mucho",
            "CAUSES",
            "No fuimos",
        ),
        (
            "La moto falló, ya que la batería era vieja.",
            "la batería era vieja",
            "CAUSES",
            "La moto falló",
        ),
        (
            "Debido a la lluvia fuerte, hubo dos goteras.",
            "la lluvia fuerte",
            "CAUSES",
            "hubo dos goteras",
        ),
        (
            "Se cerró el taller a raíz del corte eléctrico.",
            "corte eléctrico",
            "TRIGGERS",
            "Se cerró el taller",
        ),
        (
            "El cargo fue devuelto. Por eso anularon la licencia.",
            "El cargo fue devuelto",
            "LEADS_TO",
            "anularon la licencia",
        ),
        ("No había hueco, así que salimos tarde.", "No había hueco", "LEADS_TO", "salimos tarde"),
        (
            "El corte de luz provocó una avería seria.",
            "El corte de luz",
            "TRIGGERS",
            "una avería seria",
        ),
    ],
)
def test_each_kind_of_marker(text: str, cause: str, relation: str, effect: str) -> None:
    assert said(text) == [(cause, relation, effect)]


@pytest.mark.parametrize(
    "text",
    [
        "¿No fuimos porque llovía mucho?",
        "¿Por qué no fuimos al monte?",
        "No fuimos, no porque lloviera tanto.",
        "Porque sí.",
        "Por eso no hay nada antes.",
        "Nos vamos aunque llueva mucho.",
        "",
    ],
)
def test_questions_negations_and_halves_state_nothing(text: str) -> None:
    assert said(text) == []


def test_the_sentence_before_counts_in_the_same_paragraph_only() -> None:
    assert said("El cargo fue devuelto.\n\nPor eso anularon la licencia.") == []


def test_chains_share_what_happened_in_between() -> None:
    """What follows from a statement follows from its effect."""
    text = "La licencia caducó porque nadie la pagó. Por eso cerraron el bar."
    first, second = find_statements(text)
    assert first.effect == second.cause
    assert said(text)[1] == ("La licencia caducó", "LEADS_TO", "cerraron el bar")


def test_spans_are_inside_the_text_and_do_not_overlap_their_marker() -> None:
    text = "🌧️ «Bah», dijo; el techo cedió (por fin) porque el agua pesaba, y por eso huimos todos."
    for item in find_statements(text):
        for side in (item.cause, item.effect):
            assert 0 <= side.start < side.end <= len(text)
            assert side.end <= item.marker.start or item.marker.end <= side.start
        assert 0 <= item.confidence <= 1
        assert item.relation in Relation


def test_equal_events_have_equal_keys() -> None:
    text = "Llovía Mucho, llovia  mucho"
    assert event_key(text, Span(0, 12)) == event_key(text, Span(14, 27))
