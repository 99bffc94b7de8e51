"""An answer: sentences with the ranges of passages that support them.

Choosing sentences of the passages belongs in `core.quotation`, answerers in `answers.answerers`,
judging answers in `core.judging`.
"""

from dataclasses import dataclass

from rag_resources.core.messages import Message
from rag_resources.core.text import Span


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
        sentences: In the order to be read; none if the passages contain no answer.
    """

    sentences: tuple[CitedSentence, ...] = ()

    @property
    def found(self) -> bool:
        """Whether the passages contain an answer."""
        return bool(self.sentences)

    @property
    def text(self) -> str:
        """The sentences, one paragraph each; a message if there are none."""
        return "\n\n".join(own.text for own in self.sentences) or Message.ANSWER_NOT_FOUND

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks of the passages it came from, ascending, from 1."""
        return tuple(sorted({source.rank for own in self.sentences for source in own.sources}))
