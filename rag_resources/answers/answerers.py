"""Answers a question from its passages: with their own sentences, or by a language model.

What an answer is, and how sentences are chosen, is in `core.answers`.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from typing import Annotated, Protocol

from pydantic import BaseModel, Field, create_model

from rag_resources.core.answers import NOT_FOUND, Answer, extract_answer
from rag_resources.core.configuration import canonical_hash
from rag_resources.core.deadline import Deadline
from rag_resources.core.rules import rules, word_rules
from rag_resources.core.text import is_blank
from rag_resources.core.versions import version_of
from rag_resources.languages.prompts import prompt
from rag_resources.providers.inputs import as_data, clean
from rag_resources.providers.protocols import LanguageModel

CALL_MS = 60_000.0
"""Longest wait for a language model; long, because nobody waits in front of an evaluation."""
EXTRACTIVE_VERSION = version_of(
    "extractive-2", [asdict(rules().words), asdict(rules().sentences)], first="2ecaa374470e9253"
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

    def answer(self, question: str, passages: Sequence[str]) -> Answer:
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
        words = canonical_hash(asdict(word_rules(self._language)))[:8]
        return f"{EXTRACTIVE_VERSION} {self._language}-{words}"

    def answer(self, question: str, passages: Sequence[str]) -> Answer:
        """Answer with the sentences that share most words with the question. Never fails."""
        return extract_answer(question, passages, self._language)


class _Written(BaseModel):
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

    def answer(self, question: str, passages: Sequence[str]) -> Answer:
        """Answer a question. Same errors as `Answerer`.

        Returns:
            `NOT_FOUND` if the model finds no answer; else at most `MAX_ANSWER_CHARS` characters.

        Raises:
            InvalidAnswerError: The answer has the wrong form or cites a missing passage.
        """
        written = self._model.answer(
            f"{question_as_data(question)}\n{passages_as_data(passages)}\n{self._prompt.task}",
            _shape(len(passages)),
            system=self._prompt.system,
            deadline=Deadline.after(self._timeout_ms, time.monotonic),
        )
        if not written.found or is_blank(written.answer):
            return NOT_FOUND
        text = " ".join(clean(written.answer).split())[:MAX_ANSWER_CHARS]
        return Answer(text, tuple(sorted(set(written.citations))))


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
def _shape(count: int) -> type[_Written]:
    """Return the schema of an answer that can cite only these passages."""
    return create_model(
        "Answer", __base__=_Written, citations=list[Annotated[int, Field(ge=1, le=count)]]
    )
