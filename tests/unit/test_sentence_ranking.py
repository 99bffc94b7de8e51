"""What is known of a sentence, by values computed by hand, and the order that a model makes."""

from math import log

import pytest

from rag_resources.core.logistic import FeatureWeight
from rag_resources.core.passage_sentences import ScoredPassage, beside, columns_of, sentences_of
from rag_resources.core.sentence_ranking import (
    SentenceFeature,
    SentenceModel,
    rank_sentences,
    sentence_features,
)
from rag_resources.core.text import Span

PASSAGES = [
    ScoredPassage("Cenamos sopa. La caldera pierde agua. Vino Marta.", 0.8),
    ScoredPassage("La caldera cuesta 415 euros. Llueve.", 0.6),
]


def features_of(question: str) -> dict[str, dict[SentenceFeature, float]]:
    """By the text of the sentence."""
    found = sentences_of(PASSAGES)
    known = sentence_features(question, PASSAGES, found)
    return {own.text: features for own, features in zip(found, known, strict=True)}


def test_the_title_of_a_note_counts_like_a_sentence_beside() -> None:
    """So the answer is found in a note that says only in its title what it is about."""
    late = ScoredPassage("Se averió la plegadora.", 0.6, headings=("Retraso en la imprenta",))
    other = ScoredPassage("La imprenta sube el papel.", 0.3, headings=("Costes",))
    found = sentences_of([late, other])
    known = sentence_features("¿Por qué el retraso de la imprenta?", [late, other], found)
    assert known[0][SentenceFeature.COVERAGE] == 0
    assert known[0][SentenceFeature.CONTEXT] == 1
    assert known[1][SentenceFeature.CONTEXT] < 1


def test_a_sentence_is_a_range_of_its_passage() -> None:
    for own in sentences_of(PASSAGES):
        assert PASSAGES[own.passage].text[own.span.start : own.span.end].strip() == own.text
    assert sentences_of(PASSAGES)[1].span == Span(14, 37)


def test_a_row_of_a_table_is_a_sentence() -> None:
    table = "Las obras son estas.\n\nObra | Termina\nLonja | mayo de 2026\n\nNo hay más."
    found = sentences_of([ScoredPassage(table)])
    assert [own.text for own in found] == [
        "Las obras son estas.",
        "Obra | Termina",
        "Lonja | mayo de 2026",
        "No hay más.",
    ]
    assert all(table[own.span.start : own.span.end] == own.text for own in found)


def test_coverage_counts_words_by_how_rare_they_are_among_the_sentences() -> None:
    """Of five sentences two say «caldera» and one says «agua»."""
    boiler, water = log(1 + 5 / 3), log(1 + 5 / 2)
    known = features_of("¿La caldera tiene agua?")
    whole = boiler + water
    assert known["La caldera pierde agua."][SentenceFeature.COVERAGE] == pytest.approx(1)
    assert known["La caldera cuesta 415 euros."][SentenceFeature.COVERAGE] == pytest.approx(
        boiler / whole
    )
    assert known["Cenamos sopa."][SentenceFeature.COVERAGE] == 0
    assert known["Cenamos sopa."][SentenceFeature.CONTEXT] == pytest.approx(1)
    assert known["Llueve."][SentenceFeature.PASSAGE] == pytest.approx(boiler / whole)


def test_beginnings_find_other_forms_of_a_verb() -> None:
    known = features_of("¿Cuánto costará, y quién vendrá a cenar?")
    assert known["Cenamos sopa."][SentenceFeature.COVERAGE] == 0
    assert known["Cenamos sopa."][SentenceFeature.BEGINNINGS] > 0


def test_the_passage_counts_by_its_rank_and_its_score() -> None:
    known = features_of("¿caldera?")
    first, second = known["La caldera pierde agua."], known["La caldera cuesta 415 euros."]
    assert (first[SentenceFeature.RANK], first[SentenceFeature.SCORE]) == (1, 1)
    assert second[SentenceFeature.RANK] == 0.5
    assert second[SentenceFeature.SCORE] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("question", "feature", "has", "lacks"),
    [
        ("¿Cuánto cuesta?", SentenceFeature.HAS_NUMBER, "La caldera cuesta 415 euros.", "Llueve."),
        ("¿Quién vino?", SentenceFeature.HAS_NAME, "Vino Marta.", "Llueve."),
    ],
)
def test_the_kind_of_answer_that_is_asked_for_is_there_or_not(
    question: str, feature: SentenceFeature, has: str, lacks: str
) -> None:
    known = features_of(question)
    assert (known[has][feature], known[lacks][feature]) == (1, -1)
    assert known[has][SentenceFeature.HAS_CAUSE] == 0


def test_what_the_question_says_itself_is_no_answer() -> None:
    """A name, or a number, that the question gives does not answer it."""
    assert features_of("¿Quién vino con Marta?")["Vino Marta."][SentenceFeature.HAS_NAME] == -1
    costs = features_of("¿Cuántos de los 415 quedan?")["La caldera cuesta 415 euros."]
    assert costs[SentenceFeature.HAS_NUMBER] == -1


def test_ties_keep_the_reading_order() -> None:
    weight = FeatureWeight(weight=1, mean=0, scale=1)
    model = SentenceModel(
        version="test", trained_on="", intercept=0, features={SentenceFeature.COVERAGE: weight}
    )
    ranked = rank_sentences("¿caldera?", PASSAGES, model)
    texts = [own.sentence.text for own in ranked]
    assert texts[:2] == ["La caldera pierde agua.", "La caldera cuesta 415 euros."]
    assert texts[2:] == ["Cenamos sopa.", "Vino Marta.", "Llueve."]
    assert ranked[0].score == pytest.approx(ranked[1].score)


PART = FeatureWeight(weight=1, mean=0, scale=1)
BY_WORDS = SentenceModel(
    version="test", trained_on="", intercept=0, features={SentenceFeature.COVERAGE: PART}
)


def first_of(question: str, *passages: ScoredPassage) -> str:
    return rank_sentences(question, passages, BY_WORDS)[0].sentence.text


def test_a_heading_names_what_is_asked_for_and_does_not_answer_it() -> None:
    markdown = ScoredPassage("## Revisión de la caldera\n\nLa caldera se mira en mayo.")
    assert first_of("¿Qué es la revisión de la caldera?", markdown) == "La caldera se mira en mayo."
    of_document = ScoredPassage(
        "Revisión de la\ncaldera\n\nLa caldera se mira en mayo.",
        headings=("Manual", "Revisión de  la caldera"),
    )
    assert first_of("¿Qué es la revisión de la caldera?", of_document) == (
        "La caldera se mira en mayo."
    )


def test_a_heading_answers_if_it_has_what_is_asked_for_or_there_is_nothing_else() -> None:
    priced = ScoredPassage("# Cuota del gimnasio: 45 euros\n\nEl gimnasio abre a las ocho.")
    assert first_of("¿Cuánto es la cuota del gimnasio?", priced).startswith("# Cuota")
    below = ScoredPassage("# Cuota del gimnasio\n\nPagada.")
    assert first_of("¿Qué hay de la cuota?", below) == "Pagada."
    model = ScoredPassage("# Manual del horno F-40\n\nEl horno pesa 1.150 kilos.")
    assert first_of("¿Cuánto pesa el horno del manual?", model) == "El horno pesa 1.150 kilos."
    named = ScoredPassage("# Bomba de Fuentefría\n\nLa dirige Beatriz.")
    assert first_of("¿Quién dirige la bomba?", named) == "La dirige Beatriz."
    alone = ScoredPassage("# Cuota del gimnasio")
    assert first_of("¿Qué hay de la cuota?", alone) == "# Cuota del gimnasio"


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("Plaza | Euros al mes\nMoto | 31\nFurgoneta | 82", ["Plaza | Euros al mes"]),
        ("| Obra | Fin |\n|---|:-:|\n| Lonja | mayo |", ["| Obra | Fin |", "|---|:-:|"]),
        ("Conserje | Benito\nPortera | Amparo", []),
        ("Moto | 31\nFurgoneta | 82", []),
        ("Moto | Furgoneta", []),
    ],
)
def test_the_row_that_names_the_columns_of_a_table_is_known(table: str, columns: list[str]) -> None:
    found = sentences_of([ScoredPassage(table)])
    assert [own.text for own in found if own.names_columns] == columns


def test_the_columns_of_a_table_are_no_names() -> None:
    table = "Partida | Euros | Responsable\nFerias | 900 | Lourdes\nPapel | 1200 | Marc"
    question = "¿Quién es responsable de las ferias?"
    assert first_of(question, ScoredPassage(table)) == "Ferias | 900 | Lourdes"


def test_the_price_is_in_the_row_and_not_in_the_names_of_the_columns() -> None:
    table = "Plaza | Euros al mes\nMoto | 31\nFurgoneta | 82"
    question = "¿Cuántos euros al mes cuesta la plaza de una furgoneta?"
    assert first_of(question, ScoredPassage(table)) == "Furgoneta | 82"


@pytest.mark.parametrize("question", ["¿Cuánto costó el ascensor?", "¿Qué precio tiene?"])
@pytest.mark.parametrize(
    ("text", "has_number"),
    [
        ("Se pedirán tres presupuestos.", -1),
        ("El ascensor son 48.300.", 1),
        ("Fueron veinte euros.", 1),
        ("Fueron 20 €.", 1),
        ("Ascensor | 48", 1),
        ("Ascensor | 48 | Luis", 1),
        ("Pesa 48 kilos.", -1),
        ("Salió gratis.", 1),
        ("No arrancaba.", -1),
    ],
)
def test_a_price_is_an_amount_and_not_any_number(question: str, text: str, has_number: int) -> None:
    passages = [ScoredPassage(text)]
    (known,) = sentence_features(question, passages, sentences_of(passages))
    assert known[SentenceFeature.HAS_NUMBER] == has_number


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        (
            "¿Cuánto cobra el hospital por una radiografía?",
            "El hospital hace analíticas y cada radiografía. Abre por las tardes. Llama antes.\n\n"
            "Prueba | Precio\nAnalítica | 31 €\nRadiografía | 45 €",
            "Radiografía | 45 €",
        ),
        (
            "¿Cuánto costó el ascensor del portal?",
            "El ascensor del portal se paró. Vino Luis. Nadie supo más. El seto costó 90 €.",
            "El ascensor del portal se paró.",
        ),
        (
            "¿Qué temperatura marca la nevera?",
            "La nevera marca mucho. Suena. Gotea. La nevera grande está a 8 grados.",
            "La nevera grande está a 8 grados.",
        ),
    ],
)
def test_a_sentence_with_the_amount_comes_first_if_it_is_about_what_is_asked(
    question: str, text: str, answer: str
) -> None:
    """The amount is in none of the two sentences after the best one."""
    assert first_of(question, ScoredPassage(text)) == answer


@pytest.mark.parametrize(
    ("text", "has_number"),
    [
        ("La temperatura se anota dos veces al día.", -1),
        ("Pequeña | 2 °C | 7 °C", 1),
        ("Manual del modelo F-40", -1),
        ("Plano de 2026", -1),
        ("Gasta 2026 € al mes.", 1),
        ("Nunca más de ocho grados.", 1),
    ],
)
def test_a_measure_is_an_amount_and_not_any_number(text: str, has_number: int) -> None:
    passages = [ScoredPassage(text)]
    question = "¿A qué temperatura puede estar la nevera pequeña?"
    (known,) = sentence_features(question, passages, sentences_of(passages))
    assert known[SentenceFeature.HAS_NUMBER] == has_number


def test_what_is_beside_a_sentence_is_a_sentence_or_a_row_of_a_table() -> None:
    text = "Nadie sabía\ndónde estaba. Cuelga en recepción.\n\nObra | Fin\nLonja | mayo"
    cuelga = text.index("Cuelga")
    end = text.index("\n\n")
    assert beside(text, Span(cuelga, end)) == ("Nadie sabía dónde estaba.", "Obra | Fin")
    assert beside(text, Span(0, cuelga - 1)) == ("", "Cuelga en recepción.")
    lonja = text.index("Lonja")
    assert beside(text, Span(lonja, len(text))) == ("Obra | Fin", "")


@pytest.mark.parametrize(
    ("text", "row", "columns"),
    [
        ("Prueba | Precio\nAnalítica | 31 €\nEco | 45 €\n\nMás.", "Eco | 45 €", "Prueba | Precio"),
        ("| Obra | Fin |\n|---|---|\n| Lonja | mayo |", "| Lonja | mayo |", "| Obra | Fin |"),
        ("| Obra | Fin |\n|---|---|\n| Lonja | mayo |", "| Obra | Fin |", ""),
        ("Prueba | Precio\nEco | 45 €\n\nMoto | azul", "Moto | azul", ""),
        ("Prueba | Precio\nEco | 45 €\n\nDespués.", "Después.", ""),
        ("Portera | Amparo\nConserje | Benito", "Conserje | Benito", ""),
    ],
)
def test_the_row_that_names_the_columns_of_a_row_is_found(
    text: str, row: str, columns: str
) -> None:
    start = text.index(row)
    span = Span(start, start + len(row))
    assert columns_of(text, span) == columns
    assert "---" not in "".join(beside(text, span))


def test_of_sentences_alike_by_their_words_the_one_that_matched_best_comes_first() -> None:
    text = "Cenamos sopa. Vino Marta. Llueve."
    assert first_of("¿La caldera?", ScoredPassage(text, matched=Span(14, 25))) == "Vino Marta."
    assert first_of("¿La caldera?", ScoredPassage(text)) == "Cenamos sopa."
