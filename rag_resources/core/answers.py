"""The answer type, and extractive answers: sentences of the passages, without a language model.

Answerers belong in `answers.answerers`; judging answers in `core.judging`.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rag_resources.core.messages import Message
from rag_resources.core.sentences import sentences
from rag_resources.core.wording import content

MAX_SENTENCES = 2
# A second sentence needs this share of the best score; a worse one would add little.
_CLOSE_ENOUGH = 0.75


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as the user reads it.

    Attributes:
        ranks: Ranks of the passages it came from, ascending, from 1.
        found: Whether the passages contain an answer. If not, the text says so and there are no
            ranks.
    """

    text: str
    ranks: tuple[int, ...] = ()
    found: bool = True


NOT_FOUND = Answer(Message.ANSWER_NOT_FOUND, found=False)
"""The passages contain no answer."""


def sentence_texts(text: str) -> list[str]:
    """Return the sentences of a text, each on one line."""
    return [" ".join(text[span.start : span.end].split()) for span in sentences(text)]


def extract_answer(question: str, passages: Sequence[str], language: str = "es") -> Answer:
    """Answer with the sentences that share the most words with a question.

    A sentence scores the sum of ``ln(1 + n / (1 + n_w))`` over the words of the question (stems
    and numbers) that it contains, where `n_w` of the `n` sentences contain the word.

    Args:
        question: The question.
        passages: Best first.
        language: Of the question.

    Returns:
        The best sentence and at most one that is about as good, in reading order, one paragraph
        each. Ties go to the earlier sentence. `NOT_FOUND` if no sentence contains a word of the
        question.
    """
    ranks: dict[str, int] = {}
    for rank, passage in enumerate(passages, start=1):
        for sentence in sentence_texts(passage):
            ranks.setdefault(sentence, rank)
    texts = list(ranks)
    scores = _overlaps(content(question, language), texts)
    best_first = sorted(range(len(texts)), key=lambda place: (-scores[place], place))
    if not best_first or scores[best_first[0]] == 0:
        return NOT_FOUND
    floor = _CLOSE_ENOUGH * scores[best_first[0]]
    chosen = [texts[p] for p in sorted(best_first[:MAX_SENTENCES]) if scores[p] >= floor]
    return Answer("\n\n".join(chosen), tuple(sorted({ranks[sentence] for sentence in chosen})))


def _overlaps(words: frozenset[str], texts: Sequence[str]) -> list[float]:
    held = [content(text) for text in texts]
    spread = Counter(word for found in held for word in found)
    weights = {word: math.log(1 + len(texts) / (1 + spread[word])) for word in words}
    return [math.fsum(sorted(weights[word] for word in found & words)) for found in held]
