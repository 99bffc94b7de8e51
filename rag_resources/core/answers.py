"""An answer: sentences with the ranges of passages that support them; and what fits in a context.

Choosing sentences of the passages belongs in `core.quotation`, answerers in `answers.answerers`,
judging answers in `core.judging`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rag_resources.core.sentences import sentences
from rag_resources.core.text import CHARS_PER_TOKEN, Span, count_tokens, is_blank
from rag_resources.languages.messages import _

CONTEXT_TOKENS = 3_000
MAX_CONTEXT_TOKENS = 4_000


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
        is_quotation: Whether it was copied, and is shown with the block it stands in.
    """

    text: str
    rank: int
    span: Span
    further: tuple[Source, ...] = ()
    is_quotation: bool = False

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
        return "\n\n".join(own.text for own in self.sentences) or _(
            "I found no relevant information in your notes about this question."
        )

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks of the passages it came from, ascending, from 1."""
        return tuple(sorted({source.rank for own in self.sentences for source in own.sources}))


def fitted(passages: Sequence[str], max_tokens: int = CONTEXT_TOKENS) -> list[str]:
    """Return the passages that fit, best first: whole ones, and the next cut after a sentence.

    Args:
        passages: At least one; best first.
        max_tokens: Tokens of all passages together, by `count_tokens`; >= 1.

    Returns:
        Beginnings of the first passages, at least one. If not even its first sentence fits, the
        last is cut within it.
    """
    kept: list[str] = []
    room = max_tokens
    for passage in passages:
        needed = count_tokens(passage)
        if needed > room:
            beginning = _beginning(passage, room * CHARS_PER_TOKEN, must=not kept)
            return [*kept, beginning] if beginning else kept
        kept.append(passage)
        room -= needed
    return kept


def _beginning(passage: str, longest: int, *, must: bool) -> str:
    """Return the first whole sentences of a passage that fit; if `must`, cut the first one."""
    # A sentence may be split otherwise where the text is cut, so the last one does not count.
    fitting = [span.end for span in sentences(passage[: longest + 1]) if span.end <= longest]
    whole = passage[: fitting[-1]] if fitting else ""
    return passage[:longest] if must and is_blank(whole) else whole
