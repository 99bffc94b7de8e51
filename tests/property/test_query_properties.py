"""Properties 15 to 18: the transformed question, its single intent, and its sub-queries."""

import time
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.configuration import TransformationConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.query import MAX_SUB_QUERIES, Intent, classify, decompose
from rag_resources.core.text import normalize_query
from rag_resources.retrieval.transform import HYPOTHETICAL_CHARS, QueryTransformer
from tests.language_models import ScriptedModel
from tests.strategies import any_notes

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
Draw = st.DrawFn

# By priority. Each is a keyword by itself, whatever stands beside it.
KEYWORDS = {
    Intent.CAUSAL: ["por qué", "a causa de", "motivo", "razón", "debido a", "consecuencias"],
    Intent.TEMPORAL: ["cuándo", "desde cuándo", "qué día", "en qué año", "última vez", "antes de"],
    Intent.COMPARATIVE: ["diferencia", "comparado con", "mejor que", "versus", "frente a"],
    Intent.FACTUAL: ["qué", "quién", "dónde", "cuál", "cuántas", "cómo"],
}
NEUTRAL = [
    *("porque", "aunque", "porqué", "quesos", "cualquiera", "cómoda", "cuandoquiera", "razonable"),
    *("quienquiera", "encausado", "Lucía", "pingüino", "niño", "perdió", "las", "llaves", "2024"),
]


def without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(character for character in decomposed if not unicodedata.combining(character))


SPELLINGS: list[Callable[[str], str]] = [
    str,
    str.upper,
    str.title,
    without_accents,
    lambda text: unicodedata.normalize("NFD", text),
    lambda text: unicodedata.normalize("NFD", text).upper(),
]


def any_queries() -> st.SearchStrategy[str]:
    """Any text at all, and heaps of what the rules look for."""
    parts = [
        *("?", "¿", "!", "¡", ";", " y ", " e ", "además", "también,", "«", "»", '"', "(", ")"),
        *("porque", "por qué", "más", "que", "o", ",", " ", "\n", "\u0301", "\ud800", "\0"),
    ]
    heaps = st.lists(st.sampled_from(parts), max_size=30).map("".join)
    return st.one_of(st.text(), heaps, any_notes(max_sentences=3))


def transformation_configs() -> st.SearchStrategy[TransformationConfig]:
    """Every combination of its switches."""
    names = ["enabled", "decomposition", "hyde"]
    return st.builds(TransformationConfig, **{name: st.booleans() for name in names})


@st.composite
def labelled_queries(draw: Draw) -> tuple[str, Intent]:
    """Neutral words with keywords among them, oddly written, and the first of their intents."""
    intents = draw(st.lists(st.sampled_from(list(KEYWORDS)), unique=True))
    neutral = st.lists(st.sampled_from(NEUTRAL), min_size=1, max_size=3)
    words = draw(neutral)
    for intent in intents:
        words += [draw(st.sampled_from(KEYWORDS[intent])), *draw(neutral)]
    spelled = [draw(st.sampled_from(SPELLINGS))(word) for word in words]
    space = draw(st.sampled_from([" ", "  ", "\n", "\u00a0"]))
    before, after = draw(st.sampled_from([("", ""), ("¿", "?"), ("¡«", "»!"), ("(", ")…")]))
    expected = next((intent for intent in KEYWORDS if intent in intents), Intent.ABSTRACT)
    return before + space.join(spelled).replace(" ", space) + after, expected


@st.composite
def question_bodies(draw: Draw) -> str:
    """A question without its marks."""
    asks = st.sampled_from(
        ["Qué compró", "dónde vive", "por qué llamó", "CUÁNDO vino", "y quién es"]
    )
    what = st.sampled_from(
        ["Ana", "la niña", "el Sr. Gil", "«La gata y también el can»", "Ur (4,5)"]
    )
    return f"{draw(asks)} {draw(what)} {draw(st.integers(0, 99))}"


def several_bodies() -> st.SearchStrategy[list[str]]:
    """From two to seven different questions."""
    return st.lists(question_bodies(), min_size=2, max_size=7, unique_by=normalize_query)


@given(any_queries(), transformation_configs(), st.text())
def test_property_15_the_question_comes_back_unchanged(
    query: str, config: TransformationConfig, written: str
) -> None:
    model = ScriptedModel({"answer": written})
    transformer = QueryTransformer(model, now=lambda: NOON)
    transformed = transformer.by_rules(query, config)
    deadline = Deadline.after(60_000, time.monotonic)
    refined = transformer.refined(transformed, config, deadline=deadline)
    assert transformed.original == refined.original == query
    assert bool(model.calls) == transformer.wants_language_model(transformed, config)


@given(any_queries(), transformation_configs(), any_notes() | st.text())
def test_property_16_a_transformation_is_always_whole(
    query: str, config: TransformationConfig, written: str
) -> None:
    """With or without a model, whatever it writes; disabled parts leave their field empty."""
    model = ScriptedModel({"answer": written})
    transformer = QueryTransformer(model, now=lambda: NOON)
    by_rules = transformer.by_rules(query, config)
    deadline = Deadline.after(60_000, time.monotonic)
    refined = transformer.refined(by_rules, config, deadline=deadline)
    for transformed in (by_rules, refined):
        assert transformed.transformed_at == NOON
        assert transformed.sub_queries == (
            decompose(query, coordinated=config.coordinated)
            if config.enabled and config.decomposition
            else ()
        )
    assert refined.intent is by_rules.intent is classify(query)
    answer = refined.hypothetical_answer
    assert by_rules.hypothetical_answer is None
    if not (config.enabled and config.hyde and refined.intent is Intent.ABSTRACT):
        assert answer is None
    if answer is not None:
        assert 0 < len(answer) <= HYPOTHETICAL_CHARS
        assert answer == " ".join(answer.split())
        assert answer.isprintable()


@given(labelled_queries())
def test_property_17_the_first_whole_keyword_decides_the_intent(
    labelled: tuple[str, Intent],
) -> None:
    query, expected = labelled
    assert classify(query) is expected


@given(st.lists(st.sampled_from(NEUTRAL), max_size=12), st.sampled_from([" ", ", ", " — ", "? "]))
def test_property_17_a_keyword_inside_a_word_is_nothing(words: list[str], space: str) -> None:
    assert classify(space.join(words)) is Intent.ABSTRACT


@given(any_queries())
def test_property_17_any_text_has_one_intent_however_it_is_written(query: str) -> None:
    """White space around it and the form of its letters say nothing."""
    intent = classify(query)
    for form in ("NFC", "NFD"):
        assert classify(unicodedata.normalize(form, query)) is intent
    assert classify(f"\t{query}\u2003\n") is intent


@given(several_bodies(), st.data())
def test_property_18_questions_with_marks_of_their_own_are_found(
    bodies: list[str], data: st.DataObject
) -> None:
    opening, end = data.draw(st.sampled_from([("¿", "?"), ("¿", "??"), ("¿", "?!"), ("", "?")]))
    questions = [f"{opening}{body}{end}" for body in bodies]
    space = data.draw(st.sampled_from(["", " ", "\n", " Y además, ", " y también ", "; y ", ", "]))
    before, after = data.draw(st.sampled_from([("", ""), (" ", "\n"), ("", " Gracias.")]))
    assert decompose(before + space.join(questions) + after) == tuple(questions[:MAX_SUB_QUERIES])


@given(several_bodies(), st.data())
def test_property_18_joined_questions_are_found(bodies: list[str], data: st.DataObject) -> None:
    """Without marks, or with one pair around all."""
    joiners = [
        " y también ",
        " Y además ",
        "; y ",
        ";y ",
        ", y también, ",
        " y tambien ",
        "; y además ",
    ]
    query = bodies[0]
    for body in bodies[1:]:
        query += data.draw(st.sampled_from(joiners)) + body
    spelled = data.draw(st.sampled_from([str, SPELLINGS[-2]]))
    expected = tuple(spelled(body) for body in bodies[:MAX_SUB_QUERIES])
    assert decompose(spelled(query)) == expected
    marked = decompose(spelled(f"¿{query}?"))
    assert tuple(piece.strip("¿?") for piece in marked) == expected


@given(
    st.sampled_from(["", "La lavadora, ", "Compré un coche. "]),
    st.lists(
        st.sampled_from(
            ["cuánto costó", "por qué se rompió", "hasta cuándo duró", "quién la trajo"]
        ),
        min_size=2,
        unique=True,
    ),
    st.sampled_from([" y ", ", y ", ", "]),
    st.sampled_from([str, SPELLINGS[-2]]),
)
def test_property_18_coordinated_questions_are_found(
    topic: str, bodies: list[str], joint: str, spelled: Callable[[str], str]
) -> None:
    """What stands before the question marks is repeated before each."""
    pieces = decompose(spelled(f"{topic}¿{joint.join(bodies)}?"))
    assert tuple(piece.replace("¿", "").strip("?") for piece in pieces) == tuple(
        spelled(f"{topic}{body}") for body in bodies
    )


@given(question_bodies(), st.integers(1, 4))
def test_property_18_the_same_question_again_is_no_other(body: str, times: int) -> None:
    assert decompose(" ".join([f"¿{body}?", f"¿{body.upper()} ?"] * times)) == ()


@given(any_queries())
def test_property_18_sub_queries_are_distinct_pieces_of_any_text(query: str) -> None:
    pieces = decompose(query)
    assert len(pieces) in {0, *range(2, MAX_SUB_QUERIES + 1)}
    assert len({normalize_query(piece) for piece in pieces}) == len(pieces)
    topic = query.partition("¿")[0].strip()
    position = 0
    for piece in pieces:
        assert piece == piece.strip() != ""
        if piece not in query[position:]:
            assert piece.startswith(f"{topic} ")
            piece = piece.removeprefix(topic).strip()
        position = query.index(piece, position) + len(piece)
