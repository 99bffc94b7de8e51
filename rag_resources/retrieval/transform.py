"""Transforms a question: always by rules, and by a language model where one is wanted.

The rules are in `core.query`. The pipeline waits for the model, and continues without it.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from pydantic import BaseModel

from rag_resources.core.configuration import TransformationConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.query import Intent, TransformedQuery, classify, decompose
from rag_resources.core.sentences import sentences
from rag_resources.core.text import normalize_query
from rag_resources.prompts import prompt
from rag_resources.providers.inputs import as_data
from rag_resources.providers.protocols import LanguageModel

QUESTION_CHARS = 1_000
"""Most characters of a question shown in a prompt."""
HYPOTHETICAL_CHARS = 600
"""Most characters of a hypothetical answer that are searched with: four long sentences."""
HYPOTHETICAL_SENTENCES = 4


class HypotheticalAnswer(BaseModel):
    """A passage that would answer a question."""

    answer: str


class QueryTransformer:
    """Transforms questions; thread-safe.

    Args:
        language_model: None uses the rules only.
        now: Returns the current time, time zone aware.
    """

    def __init__(
        self, language_model: LanguageModel | None, *, now: Callable[[], datetime]
    ) -> None:
        self._model = language_model
        self._now = now

    def by_rules(
        self, query: str, config: TransformationConfig, language: str = "es"
    ) -> TransformedQuery:
        """Transform a question, by the rules of its language. Properties 15, 16, 17 and 18."""
        return TransformedQuery(
            original=query,
            intent=classify(query, language),
            sub_queries=decompose(query, language, coordinated=config.coordinated)
            if config.enabled and config.decomposition
            else (),
            hypothetical_answer=None,
            transformed_at=self._now(),
        )

    def wants_language_model(
        self, transformed: TransformedQuery, config: TransformationConfig
    ) -> bool:
        """Whether `refined` would call the language model."""
        if self._model is None or not config.enabled:
            return False
        return _wants_answer(transformed.intent, config)

    def refined(
        self,
        transformed: TransformedQuery,
        config: TransformationConfig,
        *,
        deadline: Deadline,
        language: str = "es",
    ) -> TransformedQuery:
        """Let the language model write a hypothetical answer to an abstract question.

        Returns:
            The same question with an answer of at most `HYPOTHETICAL_CHARS` characters on one line,
            or None if the model wrote nothing usable. Unchanged when no language model is wanted.

        Raises:
            ProviderError: The model cannot be used or its answer is invalid; the transformation by
                rules remains usable.
            DeadlineExceededError: There was not enough time.
        """
        if self._model is None or not self.wants_language_model(transformed, config):
            return transformed
        question = _delimited(transformed.original)
        written = self._model.answer(
            f"{question}\n{prompt('hypothetical', language).task}",
            HypotheticalAnswer,
            system=prompt("hypothetical", language).system,
            deadline=deadline,
        ).answer
        answer = _searchable_answer(written, transformed.original)
        return replace(transformed, hypothetical_answer=answer)


def _wants_answer(intent: Intent, config: TransformationConfig) -> bool:
    return config.hyde and intent is Intent.ABSTRACT


def _delimited(question: str) -> str:
    """Quote the question as data: limited in length, and unable to close its element."""
    shown = as_data(_one_line(question)[:QUESTION_CHARS])
    return f"<pregunta>\n{shown}\n</pregunta>"


def _searchable_answer(written: str, question: str) -> str | None:
    """Clean what a model wrote; None if it has no words or only repeats the question."""
    # Some models put their answer in quotes. Text far past the limit is dropped before it is cut.
    line = _one_line(written[: 4 * HYPOTHETICAL_CHARS]).strip(" \"'«»“”*")
    spans = sentences(line)[:HYPOTHETICAL_SENTENCES]
    answer = _shortened(line[: spans[-1].end]) if spans else ""
    if not any(map(str.isalnum, answer)) or normalize_query(answer) == normalize_query(question):
        return None
    return answer


def _shortened(text: str) -> str:
    """Shorten a text that is too long at a word boundary."""
    if len(text) <= HYPOTHETICAL_CHARS:
        return text
    return text[: HYPOTHETICAL_CHARS + 1].rsplit(" ", 1)[0][:HYPOTHETICAL_CHARS]


def _one_line(text: str) -> str:
    """Collapse white space and unprintable characters: control characters, lone surrogates."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
