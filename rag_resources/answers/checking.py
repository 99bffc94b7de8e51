"""Checks each sentence of a language model against the passages that it cites."""

from collections.abc import Callable, Sequence

from rag_resources.core.answers import Source
from rag_resources.core.judging import (
    MIN_COSINE,
    RULES_VERSION,
    Piece,
    claims,
    could_support,
    has_its_facts,
    pieces_of,
    quote_span,
)
from rag_resources.providers.protocols import Embedder

CHECK_MODEL = "use_multilingual"
"""The model that the rules' thresholds were set for."""

_NOTES_LANGUAGE = "es"


class SupportChecker:
    """Finds the ranges of the cited passages that support a sentence.

    It applies the rules of the embedded judge.

    Numbers and names must be there, negation must agree, most words must be the same, and the
    cosine must be high enough. An answer in another language than the notes shares few words with
    them, so there numbers, names and cosine decide.

    Args:
        embedder: Returns the embedder of `CHECK_MODEL`; called when something is checked.
        language: Of the answers.
    """

    version = RULES_VERSION

    def __init__(self, embedder: Callable[[], Embedder], language: str = _NOTES_LANGUAGE) -> None:
        self._embedder = embedder
        self._language = language

    def support(
        self, question: str, sentence: str, passages: Sequence[tuple[int, str]]
    ) -> tuple[Source, ...]:
        """Return the ranges that support a sentence best, one for each claim and passage.

        Args:
            question: The question.
            sentence: As the language model wrote it.
            passages: The cited ones, with their ranks.

        Returns:
            Empty if one of its claims is supported by none of the passages, or if it claims
            nothing that can be checked.

        Raises:
            ModelMissingError: The embedding model is not installed.
        """
        found: list[Source] = []
        for claim in claims(sentence):
            own = self._quotes(claim, passages) or self._paraphrased(question, claim, passages)
            if not own:
                return ()
            found += own
        return tuple(dict.fromkeys(found))

    def _quotes(self, claim: str, passages: Sequence[tuple[int, str]]) -> list[Source]:
        return [Source(rank, span) for rank, text in passages if (span := quote_span(claim, text))]

    def _paraphrased(
        self, question: str, claim: str, passages: Sequence[tuple[int, str]]
    ) -> list[Source]:
        supports = could_support if self._language == _NOTES_LANGUAGE else has_its_facts
        near = [
            (rank, piece)
            for rank, text in passages
            for piece in pieces_of(text)
            if supports(claim, piece.text, question)
        ]
        if not near:
            return []
        texts = list(dict.fromkeys((claim, *(piece.text for _, piece in near))))
        vectors = dict(zip(texts, self._embedder().embed_passages(texts), strict=True))
        best: dict[int, tuple[float, int, Piece]] = {}
        for rank, piece in near:
            cosine = float(vectors[claim] @ vectors[piece.text])
            candidate = (cosine, -piece.span.length, piece)
            if cosine >= MIN_COSINE and (rank not in best or candidate[:2] > best[rank][:2]):
                best[rank] = candidate
        return [Source(rank, piece.span) for rank, (_, _, piece) in best.items()]
