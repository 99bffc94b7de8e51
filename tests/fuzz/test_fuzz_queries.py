"""Questions: any text is understood, expanded and searched in time, and the same way twice."""

from functools import partial
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.answers.answerers import QuotationAnswerer
from rag_resources.core.chunking import chunk_note
from rag_resources.core.configuration import ChunkingConfig, ContextConfig, RetrievalConfig
from rag_resources.core.errors import RagError
from rag_resources.core.expansion import expand
from rag_resources.core.filters import RetrievalFilters, parse_filters
from rag_resources.core.query import MAX_QUERY_CHARS, MAX_SUB_QUERIES, Intent, classify, decompose
from rag_resources.core.quotation import SourcePassage
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span, normalize_query
from rag_resources.core.types import RetrievalResponse
from rag_resources.core.wording import content, is_negated, names, numbers
from rag_resources.database.pool import Database
from rag_resources.providers.inputs import clean
from tests.corpus import Corpus, Draft
from tests.fuzz.bounds import bounded, outcome
from tests.fuzz.hostile import any_texts, heaps, json_values
from tests.property.test_retrieval_properties import configs
from tests.strategies import INJECTIONS, filters, questions

pytestmark = pytest.mark.fuzz

CORPUS = [
    Draft("El ascensor de la escalera no funciona. La junta votó arreglarlo en mayo.", "Ascensor"),
    Draft("Vera tiene fiebre. El pediatra dice que es un virus. Mañana la vuelve a ver."),
    Draft("La casa de Orriols, 2024. Así: la tarde; y él. ¿Qué más?", tags=("casa",)),
    Draft("Lola hizo mermelada de naranja amarga.", state="pending", metadata={"lugar": "1"}),
    Draft("El técnico del ascensor vino el jueves: 10.000 € y 3,5 horas.", state="new"),
    Draft("La casa de otro.", tenant="blas"),
]


@given(any_texts())
def test_any_text_is_understood_in_time(text: str) -> None:
    """Of what the rules look for in questions, as long as a note may be."""
    with bounded():
        assert classify(text) in Intent
        parts = decompose(text)
    assert len(parts) <= MAX_SUB_QUERIES
    words = set(text.split())
    assert all(words.issuperset(part.strip("¿?").split()) or part in text for part in parts)
    with bounded():
        once = normalize_query(text)
        assert normalize_query(once) == once


@given(any_texts().map(clean), any_texts())
def test_any_text_is_cut_and_worded_in_time(text: str, question: str) -> None:
    """Sentences, chunks, windows, and what short texts share."""
    with bounded():
        spans = sentences(text)
        assert all(text[span.start : span.end].strip() for span in spans)
    if spans:
        with bounded():
            expand(text, [spans[0], spans[-1], Span(0, len(text))], ContextConfig())
        with bounded():
            chunk_note(UUID(int=0), text, ChunkingConfig())
    for measure in (content, numbers, names, is_negated):
        with bounded():
            measure(text)
    with bounded():
        QuotationAnswerer().answer(question, [SourcePassage(text)])


@pytest.fixture
def corpus(database: Database) -> Corpus:
    filled = Corpus(database)
    filled.fill(CORPUS)
    return filled


def any_questions() -> st.SearchStrategy[str]:
    """Texts short enough to be searched, mostly."""
    return st.one_of(
        questions(),
        any_texts(),
        heaps().map(lambda text: text[:MAX_QUERY_CHARS]),
        st.lists(st.sampled_from([*INJECTIONS, "ascensor", "¿casa?", " & ", "!", "<->", ":*"])).map(
            " ".join
        ),
    )


def any_filters() -> st.SearchStrategy[RetrievalFilters | None]:
    """None, what the notes have or might have, and whatever passes validation."""
    fields = st.sampled_from(["source", "tags", "metadata", "created_from", "created_until"])

    def parsed(raw: dict[str, Any]) -> RetrievalFilters | None:
        try:
            return parse_filters(raw)
        except RagError:
            return None

    odd = st.dictionaries(fields, json_values() | st.dictionaries(any_texts(), any_texts()))
    return st.one_of(st.none(), filters(), odd.map(parsed))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_questions(), configs(), any_filters())
def test_any_question_is_searched_alike_twice(
    corpus: Corpus, question: str, config: RetrievalConfig, chosen: RetrievalFilters | None
) -> None:
    """Nothing of it fails, no more than k passages come back, and none of another tenant."""
    asked = partial(corpus.ask, question, config, filters=chosen)
    response = outcome(asked)
    if isinstance(response, RagError):
        assert not question.replace("\0", " ").strip() or len(question) > MAX_QUERY_CHARS
        return
    assert (set(response.degraded) - {"rerank"}, response.error) == (set(), None)
    assert len(response.results) <= config.top_k.final
    assert all("otro" not in result.content for result in response.results)
    again = outcome(asked)
    assert isinstance(again, RetrievalResponse)
    assert [each.to_json() for each in again.results] == [r.to_json() for r in response.results]
