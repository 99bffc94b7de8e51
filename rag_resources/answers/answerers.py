"""Answers a question from its passages: with their own sentences, or by a language model.

What an answer is, and how sentences are chosen, is in `core.answers`.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Protocol

import structlog
from pydantic import BaseModel, Field, create_model

from rag_resources.core.answers import NOT_FOUND, Answer, extract_answer
from rag_resources.core.configuration import canonical_hash
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DeadlineExceededError, ProviderError
from rag_resources.core.messages import Message
from rag_resources.core.rules import question_rules, rules, word_rules
from rag_resources.core.sentence_ranking import ScoredPassage, SentenceModel
from rag_resources.core.text import is_blank
from rag_resources.core.texts import Text
from rag_resources.core.versions import version_of
from rag_resources.languages.prompts import prompt
from rag_resources.providers.inputs import as_data, clean
from rag_resources.providers.protocols import LanguageModel

CALL_MS = 60_000.0
"""Longest wait for a language model; long, because nobody waits in front of an evaluation."""

_log = structlog.get_logger()


@cache
def sentence_model() -> SentenceModel:
    """Return the model that ranks sentences; `tests.benchmarks.bench_answers` makes its file."""
    stored = files("rag_resources.answers").joinpath("sentence_model.json")
    return SentenceModel.model_validate_json(stored.read_text(encoding="utf-8"))


EXTRACTIVE_VERSION = version_of(
    "extractive-3",
    [
        asdict(rules().words),
        asdict(rules().sentences),
        asdict(rules().answers),
        question_rules("es").kinds,
        sentence_model().model_dump(mode="json"),
    ],
    first="211dd98bf91f5d49",
)
"""Changes whenever the same passages might give another answer."""
MAX_ANSWER_CHARS = 2_000

# Characters of all passages in a prompt: fits the 4,096 tokens of context that Ollama gives a model
# by default.
_PASSAGES_CHARS = 10_240


class Answerer(Protocol):
    """Answers questions from the given passages only."""

    @property
    def name(self) -> str:
        """The answerer's name and version, stored with its answers."""
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


class _Reply(BaseModel):
    found: bool
    answer: str
    citations: list[int]


class LanguageModelAnswerer(Answerer):
    """Answers in a language model's words and cites the passages.

    Args:
        language_model: Safe to use from several threads.
        timeout_ms: Longest wait for an answer.
        language: Of the questions and of the answers.
    """

    def __init__(
        self, language_model: LanguageModel, *, timeout_ms: float = CALL_MS, language: str = "es"
    ) -> None:
        self._model = language_model
        self._timeout_ms = timeout_ms
        self._prompt = prompt("answer", language)

    @property
    def name(self) -> str:
        """The answerer's name and version, stored with its answers."""
        return f"{self._model.name} {self._prompt.version}"

    def answer(self, question: str, passages: Sequence[ScoredPassage]) -> Answer:
        """Answer a question. Same errors as `Answerer`.

        Returns:
            `NOT_FOUND` if the model finds no answer; else at most `MAX_ANSWER_CHARS` characters.

        Raises:
            InvalidAnswerError: The answer has the wrong form or cites a missing passage.
        """
        texts = [passage.text for passage in passages]
        written = self._model.answer(
            f"{question_as_data(question)}\n{passages_as_data(texts)}\n{self._prompt.task}",
            _shape(len(passages)),
            system=self._prompt.system,
            deadline=Deadline.after(self._timeout_ms, time.monotonic),
        )
        if not written.found or is_blank(written.answer):
            return NOT_FOUND
        text = " ".join(clean(written.answer).split())[:MAX_ANSWER_CHARS]
        return Answer(text, tuple(sorted(set(written.citations))))


def build_answerer(language_model: LanguageModel | None, language: str = "es") -> Answerer:
    """Return what answers: the language model, if there is one, or sentences of the passages."""
    if language_model:
        return LanguageModelAnswerer(language_model, language=language)
    return ExtractiveAnswerer(language)


@dataclass(frozen=True, slots=True)
class Written:
    """An answer, and what wrote it.

    Attributes:
        answerer: Name and version.
        failure: Why the language model did not write it, for people; None if it did, or if none is
            configured.
    """

    answer: Answer
    answerer: str
    failure: Text | None = None


def write_answer(
    question: str,
    passages: Sequence[ScoredPassage],
    *,
    language_model: LanguageModel | None,
    language: str = "es",
) -> Written:
    """Answer with the language model; with sentences of the passages if there is none or it fails.

    Args:
        question: The question.
        passages: Best first; without any, nothing is asked.
        language_model: None if none is configured.
        language: Of the question and of the answer.
    """
    answerer = build_answerer(language_model, language)
    if not passages:
        return Written(NOT_FOUND, answerer.name)
    try:
        return Written(answerer.answer(question, passages), answerer.name)
    except (ProviderError, DeadlineExceededError) as error:
        _log.warning("language_model_gave_no_answer", error=type(error).__name__)
        failure = Message.ANSWER_WITHOUT_MODEL.format(reason=error.message)
    extractive = ExtractiveAnswerer(language)
    return Written(extractive.answer(question, passages), extractive.name, failure)


def question_as_data(question: str) -> str:
    """Return a question as it is written in a prompt."""
    return f"<pregunta>\n{as_data(question)}\n</pregunta>"


def passages_as_data(passages: Sequence[str]) -> str:
    """Return passages as written in a prompt: numbered from 1, each cut to an equal share."""
    longest = _PASSAGES_CHARS // len(passages)
    return "\n".join(
        f'<pasaje n="{number}">\n{as_data(text[:longest])}\n</pasaje>'
        for number, text in enumerate(passages, start=1)
    )


@cache
def _shape(count: int) -> type[_Reply]:
    """Return the schema of an answer that can cite only these passages."""
    return create_model(
        "Answer", __base__=_Reply, citations=list[Annotated[int, Field(ge=1, le=count)]]
    )
