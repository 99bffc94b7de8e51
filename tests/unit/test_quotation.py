"""Answers made of the sentences of passages: four numbers, by values computed by hand."""

from collections.abc import Sequence
from math import log

import pytest

from rag_resources.answers.answerers import quotation_weights
from rag_resources.core.answers import Answer
from rag_resources.core.blocks import rendered
from rag_resources.core.quotation import (
    QuotationWeights,
    RankedSentence,
    SourcePassage,
    quote,
    quote_of,
    rank_sentences,
)
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span
from rag_resources.core.types import ScoredSpan
from rag_resources.core.wording import stems

PASSAGES = [
    "El domingo llovió. Cenamos sopa y nos acostamos pronto.",
    "Hoy llamé al taller por la furgoneta. La dirección cuesta 415 €. Cerraron a las seis.",
]
WEIGHTS = QuotationWeights(rank=0.1, similarity=0.5, coverage=0.3, context=0.2, close=0.9)


def answer_from(question: str, passages: Sequence[str], language: str = "es") -> Answer:
    weights = quotation_weights()
    found = rank_sentences(question, [SourcePassage(own) for own in passages], weights, language)
    return quote(found, weights)


def ranked(question: str, *passages: SourcePassage) -> dict[str, RankedSentence]:
    """The sentences by their texts, the most likely first."""
    return {own.text: own for own in rank_sentences(question, passages, WEIGHTS)}


def test_the_sentence_with_the_words_of_the_question_answers_with_its_passage() -> None:
    answer = answer_from("¿Cuánto cuesta la dirección?", PASSAGES)
    assert (answer.text, answer.ranks, answer.found) == ("La dirección cuesta 415 €.", (2,), True)


@pytest.mark.parametrize("asked", ["cuanto costo la direccion", "¿CUÁNTO COSTÓ LA DIRECCIÓN?"])
def test_words_are_compared_without_accents_and_case(asked: str) -> None:
    passages = [
        "La direccion costó 415 €. Cuanto antes.",
        "Ayer llovió en la dirección de Ontinyent.",
    ]
    written = ranked("¿Cuánto costó la dirección?", *map(SourcePassage, passages))
    assert ranked(asked, *map(SourcePassage, passages)) == written


def test_the_score_is_the_weighted_sum_of_four_numbers() -> None:
    """Of five sentences two say «caldera» and one says «agua»."""
    found = ranked(
        "¿La caldera tiene agua?",
        SourcePassage(
            "Cenamos sopa. La caldera pierde agua. Vino Marta.",
            windows=(ScoredSpan(14, 37, 0.8), ScoredSpan(0, 13, 0.4), ScoredSpan(38, 49, 0.2)),
        ),
        SourcePassage("La caldera cuesta 415 euros. Llueve."),
    )
    boiler, water = log(1 + 5 / 3), log(1 + 5 / 2)
    part = boiler / (boiler + water)
    assert {text: own.coverage for text, own in found.items()} == pytest.approx(
        {
            "La caldera pierde agua.": 1,
            "Cenamos sopa.": 0,
            "La caldera cuesta 415 euros.": part,
            "Vino Marta.": 0,
            "Llueve.": 0,
        }
    )
    first, beside_it, second = (
        found[text]
        for text in ("La caldera pierde agua.", "Cenamos sopa.", "La caldera cuesta 415 euros.")
    )
    assert first.score == pytest.approx(0.1 + 0.5 * 0.8 + 0.3 + 0.2)
    assert beside_it.score == pytest.approx(0.1 + 0.5 * 0.4 + 0.2)
    assert second.score == pytest.approx(0.1 / 2 + 0.3 * part + 0.2 * part)


def test_only_what_lies_in_a_window_of_a_passage_counts() -> None:
    passage = SourcePassage("Cenamos sopa. Llueve.", windows=(ScoredSpan(14, 21, 0.5),))
    assert list(ranked("¿Cenamos sopa?", passage)) == ["Llueve."]


def test_the_title_of_a_note_counts_like_a_sentence_beside() -> None:
    """So the answer is found in a note that says only in its title what it is about."""
    late = SourcePassage("Se averió la plegadora.", headings=("Retraso en la imprenta",))
    other = SourcePassage("La imprenta sube el papel.", headings=("Costes",))
    found = ranked("¿Por qué el retraso de la imprenta?", late, other)
    assert found["Se averió la plegadora."].coverage == 0
    assert found["Se averió la plegadora."].context == 1
    assert found["La imprenta sube el papel."].context < 1


def test_rare_words_of_the_question_weigh_more_than_those_everywhere() -> None:
    passages = ["La obra gusta. La obra avanza. La obra sigue parada.", "El andamio llegó."]
    assert answer_from("¿Y el andamio de la obra?", passages).ranks == (2,)


@pytest.mark.parametrize(
    "passage",
    [
        SourcePassage("## Revisión de la caldera\n\nSe mira en mayo."),
        SourcePassage(
            "Revisión de la\ncaldera\n\nSe mira en mayo.",
            headings=("Manual", "Revisión de  la caldera"),
        ),
    ],
)
def test_a_heading_names_what_is_asked_for_and_does_not_answer_it(passage: SourcePassage) -> None:
    assert list(ranked("¿Cuándo es la revisión de la caldera?", passage)) == ["Se mira en mayo."]


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("| Obra | Fin |\n|---|:-:|\n| Lonja | mayo |\n| Eco | |", ["Lonja | mayo", "Eco |"]),
        ("Son estas.\n\n| Obra |\n|---|\n| Moto |", ["Son estas.", "Moto"]),
        ("| Obra | Fin |\n|---|---|\n| | junio |", ["| junio"]),
        ("Obra\tInicio\tFin\nLonja\t\tmayo\n\t\tjunio", ["Lonja | | mayo", "| | junio"]),
        ("Moto | Furgoneta", ["Moto | Furgoneta"]),
    ],
)
def test_a_row_of_a_table_is_a_sentence_unless_it_names_the_columns(
    table: str, rows: list[str]
) -> None:
    """Cells without text are kept, so each value stands under the name of its column."""
    found = ranked("¿Y eso?", SourcePassage(table))
    assert list(found) == rows
    assert all(rendered(table[own.span.start : own.span.end]) for own in found.values())


def test_a_second_sentence_is_quoted_only_if_it_is_about_as_good() -> None:
    found = list(ranked("¿La caldera?", SourcePassage("La caldera silba. Caldera rota.")).values())
    assert [own.text for own in quote(found, WEIGHTS).sentences] == [own.text for own in found]
    apart = list(ranked("¿La caldera?", SourcePassage("Llueve. La caldera silba.")).values())
    assert [own.text for own in quote(apart, WEIGHTS).sentences] == ["La caldera silba."]


def test_no_more_than_two_sentences_and_the_first_of_equal_ones() -> None:
    passages = [" ".join(f"La caldera número {n} pierde agua." for n in range(5))]
    answer = answer_from("¿Qué caldera pierde agua?", passages)
    assert len(answer.sentences) == 2
    assert "número 0" in answer.sentences[0].text


def test_a_sentence_that_two_passages_share_is_said_once_for_the_first() -> None:
    passages = ["Hay mercado. La cita es el jueves.", "La cita es el jueves. Hay feria."]
    answer = answer_from("¿Cuándo es la cita?", passages)
    assert (answer.text, answer.ranks) == ("La cita es el jueves.", (1,))


def test_what_shares_no_word_with_the_question_is_no_answer() -> None:
    for passages in (PASSAGES, [], [""], [" \n"]):
        assert answer_from("¿xilófono?", passages) == Answer()
    assert answer_from("¿y qué?", PASSAGES) == Answer()


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("fr", "Combien d'unités d'insuline dans les deux boîtes de Marcos ?"),
        ("en", "How many units of insulin are in the two boxes of Marcos?"),
    ],
)
def test_a_question_in_another_language_is_answered_by_names(language: str, question: str) -> None:
    """Its own stop words say nothing, even where they are words of Spanish too."""
    passages = ["Son las unas de la tarde, dans les d.", "A Marcos le quedan 2 cajas.", "Are in."]
    answer = answer_from(question, passages, language)
    assert (answer.text, answer.ranks) == ("A Marcos le quedan 2 cajas.", (2,))
    assert stems(question, language) >= {"marc"}


LONG = "Uno dos tres. " * 60 + "El loro es *Paco*. " + "Cuatro cinco. " * 60


@pytest.mark.parametrize(
    ("text", "sentence", "before", "after", "columns"),
    [
        ("Uno.\n\nDos tres. *Cuatro* cinco.\nSeis.", "*Cuatro* cinco.", "Dos tres.", "Seis.", ""),
        ("Pide:\n\n- DNI\n- Nómina\n\nFin.", "Pide:", "", "DNI\nNómina", ""),
        ("Antes.\n\nPide:\n- DNI\n- Nómina\n\nFin.", "Nómina", "Pide:\nDNI", "", ""),
        ("Es este:\n\n```\ncopia.sh\n```\n\nFin.", "copia.sh", "Es este:", "", ""),
        ("Es este:\n\n```\ncopia.sh\n```\n\nFin.", "Es este:", "", "copia.sh", ""),
        ("Es así:\n\nOtro párrafo.", "Es así:", "", "", ""),
        ("| A | B | C |\n|-|-|-|\n| x | | z |\n| y | w | |", "| x | | z |", "", "", "A | B | C"),
        (
            "1/3/26, 10:15 - Eva: ¿Bici?\n1/3/26, 10:16 - Leo: 80 €",
            "80 €",
            "1/3/26, 10:16 - Leo:",
            "",
            "",
        ),
        ("A\tB\tC\nx\t\tz\n\t\tw", "w", "", "", "A | B | C"),
    ],
)
def test_a_sentence_is_quoted_with_its_block(
    text: str, sentence: str, before: str, after: str, columns: str
) -> None:
    start = text.rindex(sentence)
    quote = quote_of(text, Span(start, start + len(sentence)))
    assert (quote.before, quote.after, quote.columns) == (before, after, columns)
    assert quote.span.start <= start
    assert quote.span.end >= start + len(sentence)


@pytest.mark.parametrize("text", [LONG, "x" * 900, "- uno\n" * 300])
def test_a_quote_is_short_and_holds_its_sentence(text: str) -> None:
    for sentence in sentences(text):
        quote = quote_of(text, sentence)
        assert quote.span.length <= 600
        assert quote.span.start <= sentence.start
        assert quote.span.end == sentence.end or quote.span.end >= min(sentence.end, 600)
