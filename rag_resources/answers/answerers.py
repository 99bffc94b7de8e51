"""Answers a question from its passages: with their own sentences, or by a language model.

How sentences are chosen is in `core.quotation`; how a language model answers,
in `answers.language_model`.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from typing import Protocol

import structlog

from rag_resources.answers.checking import SupportChecker
from rag_resources.answers.language_model import (
    MAX_ANSWER_TOKENS,
    AnswerOptions,
    LanguageModelAnswerer,
    Writing,
)
from rag_resources.core.answers import Answer, CitedSentence
from rag_resources.core.configuration import canonical_hash
from rag_resources.core.errors import DeadlineExceededError, ProviderError
from rag_resources.core.quotation import (
    QuotationWeights,
    RankedSentence,
    SourcePassage,
    quote,
    rank_sentences,
)
from rag_resources.core.rules import rules, word_rules
from rag_resources.core.versions import version_of
from rag_resources.languages.messages import Text, _
from rag_resources.providers.protocols import Embedder, LanguageModel

_log = structlog.get_logger()


@cache
def quotation_weights() -> QuotationWeights:
    """Return the weights that rank sentences."""
    stored = files("rag_resources.answers").joinpath("quotation.json")
    return QuotationWeights.model_validate_json(stored.read_text(encoding="utf-8"))


QUOTATION_VERSION = version_of(
    "quotation-3",
    [
        asdict(rules().words),
        asdict(rules().sentences),
        quotation_weights().model_dump(mode="json"),
    ],
    first="da3b3b84a05b2132",
)
"""Change this whenever the same passages might give another answer."""


class Answerer(Protocol):
    """Answers questions from the given passages only."""

    @property
    def name(self) -> str:
        """The answerer's name and version, stored with its answers."""
        ...

    def stream(
        self,
        question: str,
        passages: Sequence[SourcePassage],
        *,
        on_end: Callable[[Writing], None] = lambda _: None,
    ) -> Generator[CitedSentence, None, None]:
        """Answer sentence by sentence, in reading order. It may fail as `answer` does, at any time.

        Closing the generator early ends the work.

        Args:
            question: The question.
            passages: At least one, best first.
            on_end: Called after the last sentence.
        """
        ...

    def answer(self, question: str, passages: Sequence[SourcePassage]) -> Answer:
        """Answer a question from at least one passage, best first.

        Raises:
            ProviderError: The answerer cannot be used.
            DeadlineExceededError: The answer came too late.
        """
        ...


class QuotationAnswerer(Answerer):
    """Answers with sentences of the passages: always faithful, and only as good as they are.

    Args:
        language: Of the questions.
    """

    def __init__(self, language: str = "es") -> None:
        self._language = language

    @property
    def name(self) -> str:
        """The answerer's name and version, stored with its answers."""
        if self._language == "es":
            return QUOTATION_VERSION
        words = canonical_hash(asdict(word_rules(self._language)))[:8]
        return f"{QUOTATION_VERSION} {self._language}-{words}"

    def ranked(self, question: str, passages: Sequence[SourcePassage]) -> list[RankedSentence]:
        """Return the sentences of the passages, the most likely to answer first."""
        return rank_sentences(question, passages, quotation_weights(), self._language)

    def answer(self, question: str, passages: Sequence[SourcePassage]) -> Answer:
        """Answer with the sentences most likely to answer the question. Never fails."""
        return quote(self.ranked(question, passages), quotation_weights())

    def stream(
        self,
        question: str,
        passages: Sequence[SourcePassage],
        *,
        on_end: Callable[[Writing], None] = lambda _: None,
    ) -> Generator[CitedSentence, None, None]:
        """Yield the sentences of `answer`. Never fails."""
        yield from self.answer(question, passages).sentences
        on_end(Writing())


def build_answerer(
    language_model: LanguageModel | None,
    checker: Callable[[], Embedder],
    options: AnswerOptions = AnswerOptions(),  # noqa: B008 - immutable
    *,
    language: str = "es",
) -> Answerer:
    """Return the answerer: the language model if one is configured, else one that quotes.

    Args:
        language_model: None if none is configured.
        checker: Returns the embedder of `checking.CHECK_MODEL`.
        options: How the language model's answers are made.
        language: Of the questions and of the answers.
    """
    if language_model is None:
        return QuotationAnswerer(language)
    return LanguageModelAnswerer(
        language_model,
        SupportChecker(checker, language),
        options,
        language=language,
    )


@dataclass
class Telling:
    """What is found out about an answer while it is written.

    Attributes:
        answerer: Name and version of the answerer that wrote it.
        writing: Known at the end.
        failure: Why the language model did not write it, for people; None if it did, or if none is
            configured.
        interruption: Why it ends early, and what was kept; None if it is complete.
    """

    answerer: str
    writing: Writing = field(default_factory=Writing)
    failure: Text | None = None
    interruption: Text | None = None


def write_answer(
    question: str,
    passages: Sequence[SourcePassage],
    answerer: Answerer,
    *,
    language: str = "es",
    focus: str = "",
) -> tuple[Generator[CitedSentence, None, None], Telling]:
    """Answer with an answerer; if it fails before its first sentence, quote the passages.

    Args:
        question: The question.
        passages: Best first; without any, nothing is asked.
        answerer: Writes the answer.
        language: Of the question and of the answer.
        focus: The text by whose words passages are quoted; empty is the question.

    Returns:
        The sentences, in reading order, and a `Telling` that is filled while they are consumed. If
        the answerer fails later, the sentences end, and `interruption` says how many were kept.
    """
    telling = Telling(answerer.name)
    return _written(question, passages, answerer, language, telling, focus or question), telling


def _written(
    question: str,
    passages: Sequence[SourcePassage],
    answerer: Answerer,
    language: str,
    telling: Telling,
    focus: str,
) -> Generator[CitedSentence, None, None]:
    if not passages:
        return
    kept = 0

    def ended(writing: Writing) -> None:
        telling.writing = writing

    try:
        with closing(answerer.stream(question, passages, on_end=ended)) as sentences:
            for sentence in sentences:
                yield sentence
                kept += 1
    except (ProviderError, DeadlineExceededError) as error:
        _log.warning("language_model_gave_no_answer", error=type(error).__name__, kept=kept)
        if kept:
            telling.interruption = _(
                "The answer broke off: {reason} Sentences kept, already checked: {count}."
            ).format(reason=error.message, count=kept)
            return
        telling.failure = _(
            "The language model gave no answer: {reason} The answer is sentences of the notes."
        ).format(reason=error.message)
    else:
        if telling.writing.ending and telling.writing.ending.is_cut and kept:
            telling.failure = _(
                "The answer reached the maximum of {tokens} tokens and may be incomplete."
            ).format(tokens=MAX_ANSWER_TOKENS)
        if kept or not telling.writing.dropped:
            return
        telling.failure = _(
            "What the language model wrote is not in the passages that it cites. The answer is "
            "sentences of the notes."
        )
    quoting = QuotationAnswerer(language)
    telling.answerer = quoting.name
    yield from quoting.stream(focus, passages)
