"""An answer to a question, and one made of the passages' own sentences, without a language model.

What makes answers is `answers.answerers`; how good they are is `core.judging`.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rag_resources.core.messages import Message
from rag_resources.core.text import sentences
from rag_resources.core.wording import content

MAX_SENTENCES = 2
# Of the best sentence's score: a worse one would add more words than answer.
_CLOSE_ENOUGH = 0.75


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in the words a user reads.

    Attributes:
        ranks: Of the passages it came from, ascending, from 1.
        found: Whether the passages hold an answer; if not, the text says so and has no ranks.
    """

    text: str
    ranks: tuple[int, ...] = ()
    found: bool = True


NOT_FOUND = Answer(Message.ANSWER_NOT_FOUND, found=False)
"""The passages do not say."""


def sentence_texts(text: str) -> list[str]:
    """Return the sentences of a text, each on one line."""
    return [" ".join(text[span.start : span.end].split()) for span in sentences(text)]


def extract_answer(question: str, passages: Sequence[str]) -> Answer:
    """Answer with the sentences that share most words with a question.

    A sentence scores the sum of ``ln(1 + n / (1 + n_w))`` over the words of the question (stems
    and numbers) that it holds, where `n_w` of the `n` sentences hold the word.

    Args:
        question: What is asked.
        passages: Best first.

    Returns:
        The best sentence, and at most one that is about as good, in reading order, a paragraph
        each; of equal ones the first. `NOT_FOUND` if no sentence holds a word of the question.
    """
    ranks: dict[str, int] = {}
    for rank, passage in enumerate(passages, start=1):
        for sentence in sentence_texts(passage):
            ranks.setdefault(sentence, rank)
    texts = list(ranks)
    scores = _overlaps(question, texts)
    best_first = sorted(range(len(texts)), key=lambda place: (-scores[place], place))
    if not best_first or scores[best_first[0]] == 0:
        return NOT_FOUND
    floor = _CLOSE_ENOUGH * scores[best_first[0]]
    chosen = [texts[p] for p in sorted(best_first[:MAX_SENTENCES]) if scores[p] >= floor]
    return Answer("\n\n".join(chosen), tuple(sorted({ranks[sentence] for sentence in chosen})))


def _overlaps(question: str, texts: Sequence[str]) -> list[float]:
    held = [content(text) for text in texts]
    spread = Counter(word for words in held for word in words)
    weights = {word: math.log(1 + len(texts) / (1 + spread[word])) for word in content(question)}
    return [math.fsum(sorted(weights[word] for word in words & weights.keys())) for words in held]
