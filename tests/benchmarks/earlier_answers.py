"""The extractive answer before sentences were ranked by a model, to compare the present one with.

It was `extractive-1` of the product: the sentences that share the most words with the question.
"""

import math
from collections import Counter
from collections.abc import Sequence

from rag_resources.core.answers import NOT_FOUND, Answer, CitedSentence
from rag_resources.core.passage_sentences import ScoredPassage, Sentence
from rag_resources.core.sentences import sentences
from rag_resources.core.wording import content

_MAX_SENTENCES = 2
_CLOSE_ENOUGH = 0.75


def earlier_answer(question: str, passages: Sequence[ScoredPassage]) -> Answer:
    """Answer with the sentences that share the most words with a question.

    A sentence scores the sum of ``ln(1 + n / (1 + n_w))`` over the words of the question (stems
    and numbers) that it contains, where `n_w` of the `n` sentences contain the word.

    Args:
        question: In Spanish.
        passages: Best first.

    Returns:
        The best sentence and at most one that has three quarters of its score, in reading order.
        Ties go to the earlier sentence. `NOT_FOUND` if none has a word of the question.
    """
    candidates = _sentences(passages)
    scores = _overlaps(content(question, "es"), [own.text for own in candidates])
    best_first = sorted(range(len(candidates)), key=lambda place: (-scores[place], place))
    if not best_first or scores[best_first[0]] == 0:
        return NOT_FOUND
    floor = _CLOSE_ENOUGH * scores[best_first[0]]
    chosen = [candidates[p] for p in sorted(best_first[:_MAX_SENTENCES]) if scores[p] >= floor]
    cited = tuple(CitedSentence(own.text, own.passage + 1, own.span) for own in chosen)
    return Answer("\n\n".join(own.text for own in chosen), sentences=cited)


def _sentences(passages: Sequence[ScoredPassage]) -> list[Sentence]:
    found: dict[str, Sentence] = {}
    for index, passage in enumerate(passages):
        for span in sentences(passage.text):
            text = " ".join(passage.text[span.start : span.end].split())
            found.setdefault(text, Sentence(index, span, text))
    return list(found.values())


def _overlaps(words: frozenset[str], texts: Sequence[str]) -> list[float]:
    held = [content(text) for text in texts]
    spread = Counter(word for found in held for word in found)
    weights = {word: math.log(1 + len(texts) / (1 + spread[word])) for word in words}
    return [math.fsum(sorted(weights[word] for word in found & words)) for found in held]
