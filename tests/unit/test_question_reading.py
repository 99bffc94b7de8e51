"""What a question says of itself by the rules of its language, and what turns carry over."""

import pytest

from rag_resources.core.conversation import carry_over, invents_nothing
from rag_resources.core.question_reading import (
    CLARIFICATION,
    OPINION,
    Complexity,
    read_question,
    refers_back,
)
from rag_resources.documents.media_types import SUFFIXES

BEFORE = "¿Qué pasó con la insulina durante el apagón en Teruel en abril de 2025?"


@pytest.mark.parametrize(
    ("question", "language", "intent"),
    [
        ("¿Qué pasó en 2025?", "es", "factual"),
        ("¿Qué opinas de la obra?", "es", OPINION),
        ("¿y por qué?", "es", CLARIFICATION),
        ("¿qué pasó?", "es", CLARIFICATION),
        ("hola", "es", CLARIFICATION),
        ("el taller", "es", "abstract"),
        ("¿Por qué cambiamos de coche?", "es", "causal"),
        ("Pourquoi ?", "fr", CLARIFICATION),
        ("Que penses-tu du projet ?", "fr", OPINION),
        ("what happened then?", "en", CLARIFICATION),
        ("should I sell the car?", "en", OPINION),
    ],
)
def test_a_question_without_content_and_one_for_an_opinion_are_told(
    question: str, language: str, intent: str
) -> None:
    assert read_question(question, language).intent == intent


@pytest.mark.parametrize(
    ("question", "language", "first", "last"),
    [
        ("¿Qué pasó en 2025?", "es", "2025-01-01", "2026-01-01"),
        ("¿Qué dijo en marzo de 2025?", "es", "2025-03-01", "2025-04-01"),
        ("¿Qué dijo en marzo 2025?", "es", "2025-03-01", "2025-04-01"),
        ("¿Y durante diciembre de 2024?", "es", "2024-12-01", "2025-01-01"),
        ("Que s'est-il passé en mars 2025 ?", "fr", "2025-03-01", "2025-04-01"),
        ("What happened in March 2025?", "en", "2025-03-01", "2025-04-01"),
        ("¿Qué cuesta el plan 2025?", "es", "", ""),
        ("¿Qué pasó en 2025-03-14?", "es", "", ""),
    ],
)
def test_a_year_or_a_month_of_a_year_is_a_period(
    question: str, language: str, first: str, last: str
) -> None:
    periods = read_question(question, language).periods
    assert [(f"{own.start:%Y-%m-%d}", f"{own.end:%Y-%m-%d}") for own in periods] == (
        [(first, last)] if first else []
    )


def test_files_names_and_minutes_of_a_month_are_told() -> None:
    signs = read_question(
        "¿Qué cuesta según plan_2025.pdf y el acta de marzo de 2025 a Marta Ruiz?"
    )
    assert signs.file_names == ("plan_2025.pdf",)
    assert signs.names == ("Marta Ruiz",)
    assert [
        (own.word, own.month, own.year)
        for own in read_question("¿Qué se decidió en el acta de marzo?").titled
    ] == [("acta", 3, None)]
    assert "plan 2025" in read_question("¿Qué dice el plan 2025?").phrases


@pytest.mark.parametrize(
    ("question", "language", "shown"),
    [
        ("el acta de marzo", "es", "acta, marzo"),
        ("¿Qué dice el acta de marzo de 2025?", "es", "acta, marzo 2025"),
        ("¿Qué se aprobó según las actas del mes de junio?", "es", "acta, junio"),
        ("Resume el acta del 12 de marzo", "es", "acta, marzo"),
        ("¿Quién firma las cuentas del acta de abril?", "es", "acta, abril"),
        ("the minutes of March", "en", "minutes, march"),
        ("le rapport de mars 2025", "fr", "rapport, mars 2025"),
    ],
)
def test_a_note_of_a_month_is_told_with_the_name_of_the_month(
    question: str, language: str, shown: str
) -> None:
    assert [own.shown for own in read_question(question, language).titled] == [shown]


def test_quoted_titles_may_be_names_of_files() -> None:
    assert "La mudanza" in read_question("¿Qué dice «La mudanza»?").phrases


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".odt", ".pptx", ".jsonl"])
def test_a_name_with_the_ending_of_a_document_is_the_name_of_a_file(suffix: str) -> None:
    name = f"rapport-v2{suffix}"
    assert read_question(f"Que dit {name} ?", "fr").file_names == (name,)


def test_the_name_of_a_file_may_have_spaces_and_the_number_of_a_copy() -> None:
    signs = read_question("¿Qué cuesta según Informe final de obra (2).pdf?")
    assert signs.file_names == ("obra (2).pdf",)
    assert "Informe final de obra (2).pdf" in signs.phrases


@pytest.mark.parametrize(
    ("question", "language", "people"),
    [
        ("¿Cuánto cuesta el tejado según la Pilar?", "es", ("Pilar",)),
        ("¿Qué nos propuso Marcos Ruiz para el tejado?", "es", ("Marcos Ruiz",)),
        ("¿Por qué Ane no me dijo nada?", "es", ("Ane",)),
        ("¿Qué hay en las notas sobre Íñigo?", "es", ("Íñigo",)),
        ("¿Cuánto le marcó el dedo a Vera?", "es", ()),
        ("¿Quién vio a Pilar cuando lo dijo Bernat?", "es", ("Bernat",)),
        ("Combien coûte le toit selon Pilar ?", "fr", ("Pilar",)),
        ("Qu'a dit Pilar du toit ?", "fr", ("Pilar",)),
        ("What did Pilar say about the roof?", "en", ("Pilar",)),
        ("How far is Teruel?", "en", ()),
    ],
)
def test_who_says_something_is_told_and_who_is_only_named_is_not(
    question: str, language: str, people: tuple[str, ...]
) -> None:
    assert read_question(question, language).people == people


@pytest.mark.parametrize(
    ("question", "complexity"),
    [
        ("¿Cuánto pide el taller?", Complexity.SIMPLE),
        ("¿Cuánto pide el taller y también cuándo abre?", Complexity.COMPOUND),
        ("¿Qué diferencia hay entre el taller y la tienda?", Complexity.COMPLEX),
        ("¿Qué cuesta según a_1.pdf y b_2.pdf?", Complexity.COMPLEX),
    ],
)
def test_how_much_a_question_asks_for(question: str, complexity: Complexity) -> None:
    assert read_question(question).complexity is complexity


@pytest.mark.parametrize(
    ("question", "language", "is_back"),
    [
        ("¿Quién lo trajo?", "es", True),
        ("¿Qué dijo él?", "es", True),
        ("¿Y qué pasó ese día?", "es", True),
        ("¿Qué dijo el médico?", "es", False),
        ("¿Qué es lo que dijo la doctora?", "es", False),
        ("Qu'a-t-elle dit ?", "fr", True),
        ("What did he say?", "en", True),
        ("Is there a car?", "en", False),
    ],
)
def test_a_pronoun_refers_back(question: str, language: str, is_back: bool) -> None:
    assert refers_back(question, language) is is_back


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("¿Quién lo trajo?", ("Teruel", "en abril de 2025")),
        ("¿Y por qué?", ("Teruel", "en abril de 2025", "insulina", "apagón")),
        ("¿Y en mayo de 2025?", ("Teruel", "insulina", "apagón")),
        ("¿Cuánto pide el taller?", ()),
        ("¿Y cuánto duró?", ("Teruel", "en abril de 2025", "insulina", "apagón")),
        ("¿Y cuánto duró el corte?", ("Teruel", "en abril de 2025")),
        ("¿Y la gata?", ("Teruel", "en abril de 2025", "insulina", "apagón")),
        ("¿Y qué dijo Marta?", ()),
        ("¿Y cuánto costó en mayo de 2025?", ("Teruel",)),
        ("¿Quién lo trajo a Teruel en mayo de 2025?", ()),
    ],
)
def test_names_and_dates_are_carried_over_and_words_if_there_are_none(
    question: str, words: tuple[str, ...]
) -> None:
    carried = carry_over(question, ["¿Quién es Ana?", BEFORE])
    assert carried.words == words
    assert (carried.searched == question) is (words == ())
    assert all(word in carried.searched for word in words)


@pytest.mark.parametrize(
    ("question", "language", "words"),
    [("Et la panne ?", "fr", ("Marta",)), ("And the failure?", "en", ("Marta",))],
)
def test_what_begins_with_and_goes_on_in_every_language(
    question: str, language: str, words: tuple[str, ...]
) -> None:
    before = {"fr": "Que dit Marta ?", "en": "What did Marta say?"}
    assert carry_over(question, [before[language]], language).words == words


@pytest.mark.parametrize(
    ("turn", "question", "searched"),
    [
        (
            "¿Cuánto costó el horno de Irun?",
            "¿y el de Tolosa?",
            "¿Cuánto costó el horno de Tolosa?",
        ),
        ("¿Qué turno tiene Ana en marzo?", "¿y Berta?", "¿Qué turno tiene Berta en marzo?"),
        ("¿Qué turno tiene Ana en marzo?", "¿Y en abril?", "¿Qué turno tiene Ana en abril?"),
        ("¿Qué pasó en mayo de 2025?", "¿y en junio?", "¿Qué pasó en junio de 2025?"),
        ("¿Qué pasó en mayo de 2025?", "¿y en 2026?", "¿Qué pasó en 2026?"),
        ("¿Qué pasó en 2025?", "¿y en junio?", "¿Qué pasó en junio 2025?"),
        ("¿Qué se dijo del plan 2025?", "¿y de junio?", "¿Qué se dijo de junio?"),
        ("¿Cuánto cuesta la harina?", "y la mantequilla", "¿Cuánto cuesta la mantequilla?"),
        ("¿Qué se dijo del riego?", "¿y de la poda?", "¿Qué se dijo de la poda?"),
        (
            "¿Cuánto costó la avería de la bomba 3?",
            "¿y la de la bomba 5?",
            "¿Cuánto costó la avería de la bomba 5?",
        ),
        (
            "¿Cuánto se vendió en Irun en marzo de 2025?",
            "¿Y en Tolosa en abril de 2025?",
            "¿Cuánto se vendió en Tolosa en abril de 2025?",
        ),
        (
            "¿Cuántos kilos de harina gasta la tienda de Irun?",
            "¿y de azúcar?",
            "¿Cuántos kilos de azúcar gasta la tienda de Irun?",
        ),
        ("¿El horno de Irun cuánto gasta?", "¿y el de Eibar?", "¿El horno de Eibar cuánto gasta?"),
        ("¿Qué relación tiene Ana con Eva?", "¿y Luz?", "¿Qué relación tiene Luz con Eva?"),
        ("¿Cuándo se firmó?", "¿y el plan de Irun?", "¿y el plan de Irun? (firmó)"),
        ("¿Qué dijo Ana?", "¿y la avería?", "¿y la avería? (Ana)"),
        ("¿Quién dirige Aurora?", "¿Y qué plan tiene Boreal?", "¿Y qué plan tiene Boreal?"),
        ("¿Quién dirige Aurora?", "¿Y Boreal, o Cierzo?", "¿Y Boreal, o Cierzo?"),
        ("¿Quién dirige Aurora?", "¿Y?", "¿Y? (Aurora dirige)"),
    ],
)
def test_another_subject_takes_the_place_of_its_counterpart(
    turn: str, question: str, searched: str
) -> None:
    assert carry_over(question, ["¿Quién vino?", turn]).searched == searched


@pytest.mark.parametrize(
    ("language", "turn", "question", "searched"),
    [
        (
            "en",
            "Who repaired the oven of Lyon?",
            "And that of Brest?",
            "Who repaired the oven of Brest?",
        ),
        ("fr", "Combien coûte la farine ?", "Et le beurre ?", "Combien coûte le beurre ?"),
        (
            "fr",
            "Qui a réparé le four de Lyon ?",
            "Et celui de Brest ?",
            "Qui a réparé le four de Brest ?",
        ),
    ],
)
def test_another_subject_in_every_language(
    language: str, turn: str, question: str, searched: str
) -> None:
    assert carry_over(question, [turn], language).searched == searched


def test_the_last_turn_that_names_something_is_taken() -> None:
    turns = ["¿Qué dijo Marta en Teruel?", "¿y por qué?"]
    assert carry_over("¿Quién lo trajo?", turns).words == ("Marta", "Teruel")
    assert carry_over("¿Quién lo trajo?", []).words == ()


@pytest.mark.parametrize(
    ("question", "invents"),
    [
        ("¿Quién trajo la insulina a Teruel en abril de 2025?", False),
        ("Según Ana, ¿quién la trajo a teruel?", False),
        ("¿Quién la trajo con Marta?", True),
        ("¿Quién trajo 3 cajas a Teruel?", True),
        ("¿Quién la trajo en 20255?", True),
    ],
)
def test_a_rewritten_question_has_no_names_and_figures_of_its_own(
    question: str, invents: bool
) -> None:
    assert invents_nothing(question, ["¿Quién es Ana?", BEFORE, "¿Quién la trajo?"]) is not invents
