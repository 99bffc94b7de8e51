"""Properties of quotations."""

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.answers.answerers import QuotationAnswerer
from rag_resources.core.quotation import SourcePassage
from tests.strategies import sentence_texts, visible_texts

QUESTIONS = visible_texts() | st.sampled_from(["¿Qué pasó?", "¿Cuánto cuesta?", "¿Quién vino?"])
PASSAGES = st.builds(SourcePassage, sentence_texts() | visible_texts())


@given(QUESTIONS, st.lists(PASSAGES, max_size=5))
def test_property_47_a_quoted_sentence_is_a_range_of_its_passage(
    question: str, passages: list[SourcePassage]
) -> None:
    answer = QuotationAnswerer().answer(question, passages)
    for sentence in answer.sentences:
        quoted = passages[sentence.rank - 1].text[sentence.span.start : sentence.span.end]
        assert " ".join(quoted.split()) == sentence.text != ""
    assert sorted({own.rank for own in answer.sentences}) == list(answer.ranks)
