"""Properties of extractive answers."""

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.answers.answerers import ExtractiveAnswerer
from rag_resources.core.passage_sentences import ScoredPassage
from tests.strategies import sentence_texts, visible_texts

QUESTIONS = visible_texts() | st.sampled_from(["¿Qué pasó?", "¿Cuánto cuesta?", "¿Quién vino?"])
PASSAGES = st.builds(ScoredPassage, sentence_texts() | visible_texts(), st.floats(0, 1))


@given(QUESTIONS, st.lists(PASSAGES, max_size=5))
def test_property_47_an_extracted_sentence_is_a_range_of_its_passage(
    question: str, passages: list[ScoredPassage]
) -> None:
    answer = ExtractiveAnswerer().answer(question, passages)
    for sentence in answer.sentences:
        quoted = passages[sentence.rank - 1].text[sentence.span.start : sentence.span.end]
        assert " ".join(quoted.split()) == sentence.text != ""
    assert sorted({own.rank for own in answer.sentences}) == list(answer.ranks)
    assert answer.found == bool(answer.sentences)
