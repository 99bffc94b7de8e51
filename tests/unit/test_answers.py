"""Answers made of the sentences of passages."""

from collections.abc import Sequence

import pytest

from rag_resources.answers.answerers import ExtractiveAnswerer
from rag_resources.core.answers import MAX_SENTENCES, NOT_FOUND, Answer, sentence_texts
from rag_resources.core.passage_sentences import ScoredPassage
from rag_resources.core.wording import content

PASSAGES = [
    "El domingo llovió. Cenamos sopa y nos acostamos pronto.",
    "Hoy llamé al taller por la furgoneta. La dirección cuesta 415 €. Cerraron a las seis.",
]


def answer_from(question: str, passages: Sequence[str], language: str = "es") -> Answer:
    """Answer from passages of equal scores."""
    return ExtractiveAnswerer(language).answer(question, [ScoredPassage(own) for own in passages])


def test_the_sentence_with_the_words_of_the_question_answers_with_its_passage() -> None:
    answer = answer_from("¿Cuánto cuesta la dirección?", PASSAGES)
    assert (answer.text, answer.ranks, answer.found) == ("La dirección cuesta 415 €.", (2,), True)


def test_a_second_sentence_about_as_good_comes_along_in_reading_order() -> None:
    passages = ["Llueve.", "Nada. A Tuca le curaron la pata. Fin. Tuca cojea de una pata."]
    answer = answer_from("¿Qué le pasa a Tuca en la pata?", passages)
    assert answer.text == "A Tuca le curaron la pata.\n\nTuca cojea de una pata."
    assert answer.ranks == (2,)


@pytest.mark.parametrize(
    ("question", "passage", "told"),
    [
        (
            "¿Cuánto cuesta la batería del grupo?",
            "Batería del grupo, de 12 voltios. 289 euros la unidad. Se piden dos.",
            ["Batería del grupo, de 12 voltios.", "289 euros la unidad."],
        ),
        (
            "¿Cuánto cuesta la batería del grupo?",
            "Batería del grupo, de 12 voltios. La trae Luis. Vale 289 €.",
            ["Batería del grupo, de 12 voltios.", "Vale 289 €."],
        ),
        (
            "¿Cuánto cuesta la batería del grupo?",
            "Batería del grupo, de 12 voltios. La trae Luis. Llueve. Luis debe 10 euros.",
            ["Batería del grupo, de 12 voltios."],
        ),
        (
            "¿Cuánto cuesta la batería del grupo?",
            "La batería del grupo cuesta 289 euros. Luis debe 10 euros.",
            ["La batería del grupo cuesta 289 euros."],
        ),
        (
            "¿Cuánto cuesta el pan de calabaza?",
            "Probamos el pan de calabaza. Gustó. Sale a las diez.\n\n- Precio: 4,20 la pieza.",
            ["Probamos el pan de calabaza.", "- Precio: 4,20 la pieza."],
        ),
        (
            "¿Cuánto cuesta el pan de calabaza?",
            "Precio: 4,20 la hogaza. Probamos el pan de calabaza. Gustó.",
            ["Probamos el pan de calabaza."],
        ),
        (
            "¿Cuánto costó el ascensor del portal?",
            "El ascensor del portal se paró. Vino Luis. Nadie supo más. El seto costó 90 €.",
            ["El ascensor del portal se paró."],
        ),
        (
            "¿Cuánto mide la puerta del almacén?",
            "La puerta del almacén es de roble. Tres metros de alto.",
            ["La puerta del almacén es de roble.", "Tres metros de alto."],
        ),
    ],
)
def test_an_amount_that_soon_follows_comes_along(
    question: str, passage: str, told: list[str]
) -> None:
    assert answer_from(question, [passage]).text.split("\n\n") == told


@pytest.mark.parametrize(
    ("passage", "told"),
    [
        (
            "Reventó una tubería. Por eso se cerró el aula 3. La clase va a la biblioteca.",
            ["Reventó una tubería.", "Por eso se cerró el aula 3."],
        ),
        (
            "Se cerró el aula 3. La clase va a la biblioteca. Fue porque reventó una tubería.",
            ["Se cerró el aula 3.", "Fue porque reventó una tubería."],
        ),
        (
            "Se cerró el aula 3 porque reventó una tubería. Fue gracias al aviso de Ana.",
            ["Se cerró el aula 3 porque reventó una tubería."],
        ),
        (
            "Reventó una tubería y por eso se cerró el aula 3. Fue gracias al aviso de Ana.",
            ["Reventó una tubería y por eso se cerró el aula 3."],
        ),
        *(
            (f"Se cerró el aula 3. {cause}", ["Se cerró el aula 3.", cause])
            for cause in (
                "Era polvo de escayola.",
                "La gotera viene de la junta del canalón.",
                "El fallo está en la caldera.",
                "Fue por una gotera.",
                "El motivo que dieron es la gotera.",
            )
        ),
        ("Se cerró el aula 3. La clase va a la biblioteca.", ["Se cerró el aula 3."]),
    ],
)
def test_the_cause_that_stands_beside_comes_along(passage: str, told: list[str]) -> None:
    answer = answer_from("¿Por qué se cerró el aula 3?", [passage])
    assert answer.text.split("\n\n") == told


def test_no_more_sentences_than_the_most_and_the_first_of_equal_ones() -> None:
    passages = [" ".join(f"La caldera número {n} pierde agua." for n in range(5))]
    answer = answer_from("¿Qué caldera pierde agua?", passages)
    assert len(sentence_texts(answer.text)) == MAX_SENTENCES
    assert "número 0" in answer.text


def test_rare_words_of_the_question_weigh_more_than_those_everywhere() -> None:
    passages = ["La obra gusta. La obra avanza. La obra sigue parada.", "El andamio llegó."]
    assert answer_from("¿Y el andamio de la obra?", passages).ranks == (2,)


def test_a_sentence_that_two_passages_share_is_said_once_for_the_first() -> None:
    passages = ["Hay mercado. La cita es el jueves.", "La cita es el jueves. Hay feria."]
    answer = answer_from("¿Cuándo es la cita?", passages)
    assert (answer.text, answer.ranks) == ("La cita es el jueves.", (1,))


def test_line_breaks_inside_a_sentence_are_no_part_of_the_answer() -> None:
    answer = answer_from("¿cita?", ["La cita\nes el jueves."])
    assert "\n" not in answer.text


def test_what_shares_no_word_with_the_question_is_no_answer() -> None:
    for passages in (PASSAGES, [], [""], [" \n"]):
        assert answer_from("¿xilófono?", passages) == NOT_FOUND
    assert answer_from("¿y qué?", PASSAGES) == NOT_FOUND


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("fr", "Combien d'unités d'insuline dans les deux boîtes de Marcos ?"),
        ("en", "How many units of insulin are in the two boxes of Marcos?"),
    ],
)
def test_a_question_in_another_language_is_answered_by_names_and_numbers(
    language: str, question: str
) -> None:
    """Its own stop words say nothing, even where they are words of Spanish too."""
    passages = ["Son las unas de la tarde, dans les d.", "A Marcos le quedan 2 cajas.", "Are in."]
    answer = answer_from(question, passages, language)
    assert (answer.text, answer.ranks) == ("A Marcos le quedan 2 cajas.", (2,))
    assert content(question, language) >= {"2", "marc"}
