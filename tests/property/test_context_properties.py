"""Properties of what a language model gets to answer from."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.answers.prompting import answer_prompt
from rag_resources.core.answers import fitted
from rag_resources.core.quotation import SourcePassage
from rag_resources.core.sentences import sentences
from rag_resources.core.text import count_tokens, is_blank
from rag_resources.prompts import prompt
from tests.strategies import sentence_texts, visible_texts

PASSAGES = st.lists(sentence_texts() | visible_texts(), min_size=1, max_size=6)
DATES = {
    "es": "FECHA ACTUAL: 22 de noviembre de 2026",
    "fr": "DATE ACTUELLE: 22 novembre 2026",
}


@given(PASSAGES, st.integers(1, 60), st.sampled_from(sorted(DATES)), visible_texts())
def test_property_49_the_context_fits_is_cut_at_a_sentence_and_carries_the_date(
    passages: list[str], max_tokens: int, language: str, question: str
) -> None:
    kept = fitted(passages, max_tokens)
    assert 1 <= len(kept) <= len(passages)
    assert sum(map(count_tokens, kept)) <= max_tokens
    *whole, last = kept
    assert whole == passages[: len(whole)]
    original = passages[len(whole)]
    assert original.startswith(last)
    if last != original and (whole or not _is_first_sentence_too_long(original, max_tokens)):
        ends = [span.end for span in sentences(original[: len(last) + 1])]
        assert len(last) in ends
    made = answer_prompt(
        question,
        [SourcePassage(text) for text in kept],
        prompt("answer", language),
        today=date(2026, 11, 22),
        language=language,
    )
    assert made.startswith(f"{DATES[language]}\n")


def _is_first_sentence_too_long(text: str, max_tokens: int) -> bool:
    """Whether no whole sentence that says something fits."""
    room = 4 * max_tokens
    fitting = [span.end for span in sentences(text[: room + 1]) if span.end <= room]
    return not fitting or is_blank(text[: fitting[-1]])
