"""Property 28 of judged answers: faithfulness and answer relevance are in [0, 1], or missing."""

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.answers.answerers import QuotationAnswerer
from rag_resources.core.quotation import SourcePassage
from rag_resources.evaluation.judge import EmbeddedJudge
from tests.embedders import HashEmbedder

WORDS = [
    "La",
    "gata",
    "Ana",
    "no",
    "duerme",
    "415",
    "dos",
    "¿qué?",
    "come.",
    "Fin.",
    "a:",
    "\n",
    "€",
]
texts = st.one_of(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), st.text(max_size=40))


@given(texts, texts, st.lists(texts, min_size=1, max_size=4))
def test_property_28_judgements_are_in_range_and_name_what_is_missing(
    question: str, answer: str, passages: list[str]
) -> None:
    judgement = EmbeddedJudge(HashEmbedder()).judge(question, answer, passages)
    assert 0 <= judgement.answer_relevance <= 1
    assert judgement.faithfulness is None or 0 <= judgement.faithfulness <= 1
    assert (judgement.faithfulness in (None, 1.0)) == (judgement.unsupported == ())


@given(texts, st.lists(texts, min_size=1, max_size=4))
def test_property_28_an_extracted_answer_gets_no_faithfulness(
    question: str, passages: list[str]
) -> None:
    answer = QuotationAnswerer().answer(question, [SourcePassage(own) for own in passages])
    assert all(1 <= rank <= len(passages) for rank in answer.ranks)
    assert answer.found == bool(answer.ranks)
    if answer.found:
        judgement = EmbeddedJudge(HashEmbedder()).judge(question, answer.text, passages)
        assert judgement.faithfulness is None
