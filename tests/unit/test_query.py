"""The intent of hand-labelled questions, and the questions inside a question."""

import json
import re
import unicodedata
from pathlib import Path

import pytest

import rag_assets
from rag_resources.core.query import MAX_SUB_QUERIES, Intent, classify, decompose, searched_words

LABELLED = {
    Intent.CAUSAL: [
        "¿Por qué dejó Marta el trabajo?",
        "Dime por   qué\ncambiamos de coche",
        "¿Cuál fue la causa de la avería?",
        "¿Qué causó la gotera del baño?",
        "¿Qué provocó el corte de luz?",
        "¿A qué se debe el ruido de la caldera?",
        "¿Se debía a la humedad?",
        "¿Cómo es que Ana no vino a la boda?",
        "¿Cómo fue que perdimos el tren?",
        "¿Por culpa de quién llegamos tarde?",
        "¿Qué cambió a raíz de la auditoría?",
        "¿Qué efecto tuvo el antibiótico?",
        "¿Qué hizo que cambiaras de opinión?",
        "¿Cuándo y por qué cerró la panadería?",
        "¿Por qué es mejor el tren que el coche?",
    ],
    Intent.TEMPORAL: [
        "¿Cuándo nació Lucía?",
        "¿En qué fecha firmamos la hipoteca?",
        "que mes podamos los rosales",
        "¿A qué hora sale el tren?",
        "¿Hasta cuándo vale el billete?",
        "¿Qué pasó después del concierto?",
        "¿Fue la primera vez que probé el pulpo?",
        "¿Hace cuánto que no llamo a mi hermana?",
        "¿Cuánto hace que vivimos aquí?",
        "¿Cuántos meses hace de la operación?",
        "¿Cuánto tiempo tardó la obra?",
        "¿Cada cuánto se riega el ficus?",
        "fecha de la revisión de la caldera",
        "¿CUÁNDO es más barato el vuelo que el tren?",
        "¿Tengo razón cuando digo que llovía?",
    ],
    Intent.COMPARATIVE: [
        "Comparar los presupuestos de las dos cocinas",
        "¿Salió peor que la otra vez?",
        "¿Gasta más gasolina que el coche viejo?",
        "¿Es menos caro que el dentista de Ana?",
        "mas barato que el año pasado",
        "alquilar vs. comprar",
        "¿En qué se parecen los dos pisos?",
        "¿En qué se diferencia la masa madre de la levadura?",
        "¿Es tan caro como dijo Ana?",
        "¿Quién cocina mejor, mi madre o mi tía?",
        "¿Cuál es más cómodo, el tren o el autobús?",
        "¿Es distinto al modelo anterior?",
        "¿Es mejor el tren que el coche?",
        "¿Es mejor A que B?",
        "¿Fue peor la gripe de enero que la de marzo?",
    ],
    Intent.FACTUAL: [
        "¿Adónde fuimos en agosto?",
        "¿Cuán lejos está el refugio?",
        "¡Dime QUÉ compré!",
        "No recuerdo quién me dejó el libro",
        "¿Para qué sirve la llave pequeña?",
        "Aunque llovía, ¿quién vino?",
        "¿Quién tenía razón en la discusión?",
        "¿Qué más tengo que comprar?",
        "¿Cuánto cuesta más o menos el abono?",
        "¿Cuánto dinero hace falta?",
        "¿Qué bar está frente a la estación?",
        "¿Cuál es el libro más largo que he leído?",
        "¿Qué especies diferentes de setas vimos?",
        "¿Cuánto nos comparte Luis?",
    ],
    Intent.ABSTRACT: [
        "la receta de la abuela",
        "Discutimos porque llovía, aunque nadie quería",
        "PORQUÉ",
        "aunque",
        "aúnque",
        "Leía mientras que Ana dormía, ya que estaba cansada",
        "Hay que cuidar el huerto",
        "En cuanto a la casa, unas cuantas notas",
        "el encausado compareció",
        "Hicimos frente al frío",
        "😀",
        "¿?",
        "",
    ],
}
QUESTIONS = [(query, intent) for intent, queries in LABELLED.items() for query in queries]


@pytest.mark.parametrize(("query", "intent"), QUESTIONS)
def test_a_question_has_the_intent_of_its_first_keyword(query: str, intent: Intent) -> None:
    """Also composed, decomposed, in capitals, and without accents."""
    decomposed = unicodedata.normalize("NFD", query)
    bare = "".join(c for c in decomposed if not unicodedata.combining(c))
    for written in (query, decomposed, query.upper(), bare, f"  «{query}»\u00a0"):
        assert classify(written) is intent


OTHER_LANGUAGES = {
    "fr": {
        Intent.CAUSAL: ["Pourquoi la machine à laver s'est-elle arrêtée ?", "la cause de la panne"],
        Intent.TEMPORAL: ["Quand avons-nous signé le bail ?", "Quel jour est la réunion ?"],
        Intent.COMPARATIVE: [
            "Le train est-il plus rapide que la voiture ?",
            "Quelle est la différence entre les deux devis ?",
            "Qui cuisine mieux, ma mère ou ma tante ?",
        ],
        Intent.FACTUAL: ["Où est la chatte ?", "Combien coûte la réparation ?", "Qu’a dit Vera ?"],
        Intent.ABSTRACT: ["mes idées sur la retraite", "du thé ou du café"],
    },
    "en": {
        Intent.CAUSAL: ["Why did the washing machine stop?", "How come Ana did not come?"],
        Intent.TEMPORAL: ["When did we sign the lease?", "How long did the works take?"],
        Intent.COMPARATIVE: [
            "Is the train faster than the car?",
            "What is the difference between the two quotes?",
            "Who cooks better, my mother or my aunt?",
        ],
        Intent.FACTUAL: ["Where is the cat?", "How much is the repair?", "Who came as well?"],
        Intent.ABSTRACT: ["my thoughts on retirement", "more or less tired"],
    },
}


@pytest.mark.parametrize(
    ("language", "query", "intent"),
    [
        (language, query, intent)
        for language, labelled in OTHER_LANGUAGES.items()
        for intent, queries in labelled.items()
        for query in queries
    ],
)
def test_a_question_in_another_language_has_an_intent(
    language: str, query: str, intent: Intent
) -> None:
    assert classify(query, language) is intent


@pytest.mark.parametrize(
    ("language", "query", "pieces"),
    [
        ("fr", "Où est Vera ? Et qui l'a vue ?", ["Où est Vera ?", "Et qui l'a vue ?"]),
        ("fr", "Quand vient-elle et aussi avec qui", ["Quand vient-elle", "avec qui"]),
        ("fr", "Elle est venue, n'est-ce pas ?", []),
        ("fr", "Elle est venue. Qui était là ? Non ?", []),
        ("en", "Where is Vera? And who saw her?", ["Where is Vera?", "And who saw her?"]),
        ("en", "When does she come and also who with", ["When does she come", "who with"]),
        ("en", "Who was there? Right?", []),
    ],
)
def test_questions_in_another_language_are_found_as_they_were_written(
    language: str, query: str, pieces: list[str]
) -> None:
    assert decompose(query, language) == tuple(pieces)


@pytest.mark.parametrize(
    ("query", "pieces"),
    [
        ("¿Qué dijo Ana?¿Dónde vive?", ["¿Qué dijo Ana?", "¿Dónde vive?"]),
        ("Que dijo Ana? Donde vive?", ["Que dijo Ana?", "Donde vive?"]),
        ("¿Qué dijo Ana, ¿dónde vive", ["¿Qué dijo Ana", "¿dónde vive"]),
        ("¡¿Qué?! ¿¿Cómo??", ["¿Qué?!", "¿Cómo??"]),
        ("Hola, Ana. ¿Quién vino? Gracias. ¿Y quién no?", ["¿Quién vino?", "¿Y quién no?"]),
        ("1. ¿Quién vino?\n2. ¿Quién pagó?\n", ["¿Quién vino?", "¿Quién pagó?"]),
        ("¿Dónde cenamos Y ADEMAS quién pagó?", ["¿Dónde cenamos", "quién pagó?"]),
        ("¿Dónde cenamos?, y también quién pagó", ["¿Dónde cenamos?", "quién pagó"]),
        ("¿Dónde cenamos? Y, además, ¿quién pagó?", ["¿Dónde cenamos?", "¿quién pagó?"]),
        ("dónde cenamos; e Inés, ¿dónde vive?", ["dónde cenamos", "Inés", "¿dónde vive?"]),
        ("la fecha de la boda y además el menú", ["la fecha de la boda", "el menú"]),
        ("a y también b y además c; y d", ["a", "b", "c", "d"]),
        ("«¿Quién vino? ¿Quién pagó?»", ["¿Quién vino?", "¿Quién pagó?"]),
        ("¿Quién vino (¿Ana?) ayer? ¿Y hoy?", ["¿Quién vino (¿Ana?) ayer?", "¿Y hoy?"]),
        ("¿Qué es https://a.es/?b=1? ¿Y b?", ["¿Qué es https://a.es/?b=1?", "¿Y b?"]),
        ("Vino Ana, ¿verdad? ¿Quién más? ¿Y Luis?", ["¿Quién más?", "¿Y Luis?"]),
        (
            "¿De qué año era, dónde estaba la otra, y hasta cuándo duró?",
            ["¿De qué año era", "dónde estaba la otra", "hasta cuándo duró?"],
        ),
        ("que nota saque y a quien se la lei", ["que nota saque", "a quien se la lei"]),
        ("¿Qué prometí y al final lo cumplí?", ["¿Qué prometí", "al final lo cumplí?"]),
        ("¿Vino Ana, y cuánto costó traerla?", ["¿Vino Ana", "cuánto costó traerla?"]),
    ],
)
def test_several_questions_are_found_as_they_were_written(query: str, pieces: list[str]) -> None:
    assert decompose(query) == tuple(pieces)
    decomposed = unicodedata.normalize("NFD", query)
    assert decompose(decomposed) == tuple(unicodedata.normalize("NFD", piece) for piece in pieces)


@pytest.mark.parametrize(
    ("query", "pieces"),
    [
        (
            "La lavadora, ¿cuánto costó y por qué se rompió?",
            ["La lavadora, ¿cuánto costó", "La lavadora, por qué se rompió?"],
        ),
        (
            "Puse una condición. ¿Cuál era y se respetó?",
            ["Puse una condición. ¿Cuál era", "Puse una condición. se respetó?"],
        ),
    ],
)
def test_what_coordinated_questions_are_about_is_repeated(query: str, pieces: list[str]) -> None:
    assert decompose(query) == tuple(pieces)


def test_only_questions_of_their_own_are_distinct_if_coordinated_ones_do_not_count() -> None:
    assert decompose("¿Cuánto costó y por qué se rompió?", coordinated=False) == ()
    assert decompose("¿Cuánto costó? ¿Por qué se rompió?", coordinated=False) == (
        "¿Cuánto costó?",
        "¿Por qué se rompió?",
    )


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?",
        "¿? ¿? y también ; y",
        "¿¿¿Qué dijo Ana???",
        "Hola. ¿Qué dijo Ana? Gracias.",
        "Ana vino ayer, ¿no?",
        "¿Qué dijo Ana? ¿QUÉ dijo  Ana? Qué dijo Ana; y",
        "¿Qué dijo Ana. ¿Qué dijo Ana.\u3000",
        "¿Qué dijo Ana? y también",
        "Y también ¿dónde vive?",
        "¿Qué diferencia hay entre el tren y el coche?",
        "¿Cuándo y por qué cerró la panadería?",
        "¿Qué día y a qué hora firmamos?",
        "¿Gracias a quién y a qué truco dejó de caerse?",
        "¿Qué dijo Ana cuando vino y como está lejos?",
        "¿Qué compré para Ana y para Luis?",
        "¿Quién vino y se fue?",
        "¿Quién entró y se llevó el libro?",
        "¿Qué pasó cuando se cayó y lo llevaron al hospital?",
        "¿Qué dijo Ana de la policía y la librería?",
        "la lavadora, el coche y qué",
        "También vino Ana; él no",
        "Compré pan; yo no; ésta sí",
        "ley también, aunque y ademanes",
        'la nota que dice "¿quién vino? ¿quién pagó? y también Luis"',
        "¿Qué significa «hoy y también mañana»?",
        "¿Qué dijo Ana (¿o fue Luis?) en la cena?",
        "¿Qué hay en https://a.es/b?c=1 de interés?",
    ],
)
def test_a_single_question_is_not_cut(query: str) -> None:
    assert decompose(query) == ()
    assert decompose(unicodedata.normalize("NFD", query)) == ()


def test_so_many_questions_are_searched_at_most() -> None:
    pieces = [f"¿Quién pagó la cena {number}?" for number in range(9)]
    assert decompose(" ".join(pieces)) == tuple(pieces[:MAX_SUB_QUERIES])


def test_the_questions_of_the_sample_are_transformed() -> None:
    """What is taken for causal or comparative is; a part says nothing that the question does not.

    Many that ask for causes or compare do so without a keyword and count as factual; most that ask
    for a time say so.
    """
    sample = Path(rag_assets.__file__).parent / "sample" / "golden.json"
    entries = json.loads(sample.read_text(encoding="utf-8"))["entries"]
    categories: dict[Intent, list[str]] = {}
    for entry in entries:
        query = entry["query"]
        categories.setdefault(classify(query), []).append(entry["category"])
        pieces = decompose(query)
        assert len(pieces) in (0, *range(2, MAX_SUB_QUERIES + 1))
        words = set(re.findall(r"\w+", query.casefold()))
        assert all(set(re.findall(r"\w+", piece.casefold())) <= words for piece in pieces)
    assert set(categories[Intent.CAUSAL]) == {"causal", "multi-part"}
    assert set(categories[Intent.COMPARATIVE]) == {"comparative"}
    asked_for_a_time = sum(entry["category"] == "temporal" for entry in entries)
    assert categories[Intent.TEMPORAL].count("temporal") >= 0.7 * asked_for_a_time


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("¿Cómo se llama el fontanero?", "se llama el fontanero"),
        ("cuanto costo la lavadora", "costo la lavadora"),
        ("¿CUÁNDO comió?", "comió"),
        ("¿Por qué y cómo comer?", "Por y comer"),
        ("cómodo, cuantía, quesos", "cómodo cuantía quesos"),
        ("¿Cómo?", "Cómo"),
        ("", ""),
    ],
)
def test_interrogatives_are_not_searched_by_words(query: str, words: str) -> None:
    for written in (query, unicodedata.normalize("NFD", query)):
        found = searched_words(written).translate(str.maketrans("¿?,", "   ")).split()
        assert unicodedata.normalize("NFC", " ".join(found)) == words
