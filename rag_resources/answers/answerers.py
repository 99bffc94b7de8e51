"""Answers a question from its passages: with their own sentences, or by a language model.

What an answer is, and how sentences are chosen, is in `core.answers`; how a language model answers,
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
    StoredAnswer,
    Writing,
)
from rag_resources.core.answers import Answer, CitedSentence, extract_answer, opening_of
from rag_resources.core.configuration import canonical_hash
from rag_resources.core.errors import DeadlineExceededError, ProviderError
from rag_resources.core.messages import Message
from rag_resources.core.passage_sentences import ScoredPassage
from rag_resources.core.rules import question_rules, rules, word_rules
from rag_resources.core.sentence_ranking import SentenceModel
from rag_resources.core.texts import Text
from rag_resources.core.versions import version_of
from rag_resources.providers.cache import Cache
from rag_resources.providers.protocols import Embedder, LanguageModel

_log = structlog.get_logger()


@cache
def sentence_model() -> SentenceModel:
    """Return the model that ranks sentences; `tests.benchmarks.bench_answers` makes its file."""
    stored = files("rag_resources.answers").joinpath("sentence_model.json")
    return SentenceModel.model_validate_json(stored.read_text(encoding="utf-8"))


EXTRACTIVE_VERSION = version_of(
    "extractive-11",
    [
        asdict(rules().words),
        asdict(rules().sentences),
        asdict(rules().answers),
        question_rules("es").kinds,
        sentence_model().model_dump(mode="json"),
    ],
    first="90a891de392d324d",
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
        passages: Sequence[ScoredPassage],
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

    def answer(self, question: str, passages: Sequence[ScoredPassage]) -> Answer:
        """Answer a question from at least one passage, best first.

        Raises:
            ProviderError: The answerer cannot be used.
            DeadlineExceededError: The answer came too late.
        """
        ...


class ExtractiveAnswerer(Answerer):
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
            return EXTRACTIVE_VERSION
        own = [asdict(word_rules(self._language)), question_rules(self._language).kinds]
        words = canonical_hash(own)[:8]
        return f"{EXTRACTIVE_VERSION} {self._language}-{words}"

    def answer(self, question: str, passages: Sequence[ScoredPassage]) -> Answer:
        """Answer with the sentences most likely to answer the question. Never fails."""
        return extract_answer(question, passages, sentence_model(), self._language)

    def stream(
        self,
        question: str,
        passages: Sequence[ScoredPassage],
        *,
        on_end: Callable[[Writing], None] = lambda _: None,
    ) -> Generator[CitedSentence, None, None]:
        """Yield the sentences of `answer` in reading order. Never fails."""
        yield from self.answer(question, passages).sentences
        on_end(Writing())


class OpeningAnswerer(ExtractiveAnswerer):
    """Answers with the first sentences of the first passage, whatever the question asks.

    Args:
        extracts: Whether a sentence that shares a word with the question is preferred.
    """

    def __init__(self, language: str = "es", *, extracts: bool = False) -> None:
        super().__init__(language)
        self._extracts = extracts

    def answer(self, question: str, passages: Sequence[ScoredPassage]) -> Answer:
        """Answer with the first sentences. Never fails."""
        if self._extracts and (extracted := super().answer(question, passages)).found:
            return extracted
        return opening_of(passages)


def build_answerer(
    language_model: LanguageModel | None,
    checker: Callable[[], Embedder],
    options: AnswerOptions = AnswerOptions(),  # noqa: B008 - immutable
    *,
    language: str = "es",
    stored: Cache[StoredAnswer] | None = None,
) -> Answerer:
    """Return the answerer: the language model if one is configured, else the extractive one.

    Args:
        language_model: None if none is configured.
        checker: Returns the embedder of `checking.CHECK_MODEL`.
        options: How the language model's answers are made.
        language: Of the questions and of the answers.
        stored: See `LanguageModelAnswerer`.
    """
    if language_model is None:
        return ExtractiveAnswerer(language)
    return LanguageModelAnswerer(
        language_model,
        SupportChecker(checker, language),
        options,
        language=language,
        stored=stored,
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
    question: str, passages: Sequence[ScoredPassage], answerer: Answerer, *, language: str = "es"
) -> tuple[Generator[CitedSentence, None, None], Telling]:
    """Answer with an answerer; if it fails before its first sentence, quote the passages.

    Args:
        question: The question.
        passages: Best first; without any, nothing is asked.
        answerer: Writes the answer.
        language: Of the question and of the answer.

    Returns:
        The sentences, in reading order, and a `Telling` that is filled while they are consumed. If
        the answerer fails later, the sentences end, and `interruption` says how many were kept.
    """
    telling = Telling(answerer.name)
    return _written(question, passages, answerer, language, telling), telling


def _written(
    question: str,
    passages: Sequence[ScoredPassage],
    answerer: Answerer,
    language: str,
    telling: Telling,
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
            telling.interruption = Message.ANSWER_INTERRUPTED.format(
                reason=error.message, count=kept
            )
            return
        telling.failure = Message.ANSWER_WITHOUT_MODEL.format(reason=error.message)
    else:
        if telling.writing.ending and telling.writing.ending.is_cut and kept:
            telling.failure = Message.ANSWER_CUT.format(tokens=MAX_ANSWER_TOKENS)
        if kept or not telling.writing.dropped:
            return
        telling.failure = Message.ANSWER_NOT_SUPPORTED
    extractive = ExtractiveAnswerer(language)
    telling.answerer = extractive.name
    yield from extractive.stream(question, passages)
