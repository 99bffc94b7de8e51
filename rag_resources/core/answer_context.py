"""Selects the part of the passages that fits into a language model's context."""

from collections.abc import Sequence

from rag_resources.core.sentences import sentences
from rag_resources.core.text import CHARS_PER_TOKEN, count_tokens, is_blank

CONTEXT_TOKENS = 3_000
MAX_CONTEXT_TOKENS = 4_000


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
