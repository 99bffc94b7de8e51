"""What is searched beside a question: by rules always, and by a language model where one is wanted.

The rules are `core.query`; who waits for the model and goes on without it is the pipeline.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from pydantic import BaseModel

from rag_resources.core.configuration import TransformationConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.query import Intent, TransformedQuery, classify, decompose
from rag_resources.core.text import normalize_query, sentences
from rag_resources.languages.prompts import prompt
from rag_resources.providers.inputs import as_data
from rag_resources.providers.protocols import LanguageModel

QUESTION_CHARS = 1_000
"""Of a question that a prompt shows at most."""
HYPOTHETICAL_CHARS = 600
"""Of a made-up answer that is searched with at most: four long sentences."""
HYPOTHETICAL_SENTENCES = 4


class IntentAnswer(BaseModel):
    """What a language model takes a question's intent to be."""

    intent: Intent


class HypotheticalAnswer(BaseModel):
    """A passage that would answer a question."""

    answer: str


class QueryTransformer:
    """Transforms questions; safe to share between threads.

    Args:
        language_model: None leaves it at the rules.
        now: The time, aware.
    """

    def __init__(
        self, language_model: LanguageModel | None, *, now: Callable[[], datetime]
    ) -> None:
        self._model = language_model
        self._now = now

    def by_rules(self, query: str, config: TransformationConfig) -> TransformedQuery:
        """Transform a question without a language model. Properties 15, 16, 17 and 18."""
        return TransformedQuery(
            original=query,
            intent=classify(query),
            sub_queries=decompose(query) if config.enabled and config.decomposition else (),
            hypothetical_answer=None,
            transformed_at=self._now(),
        )

    def wants_language_model(
        self, transformed: TransformedQuery, config: TransformationConfig
    ) -> bool:
        """Whether `refined` would call the language model at all."""
        if self._model is None or not config.enabled:
            return False
        return config.refine_intent or _wants_answer(transformed.intent, config)

    def refined(
        self, transformed: TransformedQuery, config: TransformationConfig, *, deadline: Deadline
    ) -> TransformedQuery:
        """Let the language model say the intent and make up an answer, as the configuration wants.

        Returns:
            The same question with another intent, perhaps, and a hypothetical answer of at most
            `HYPOTHETICAL_CHARS` characters on one line if the intent is now abstract; None if the
            model wrote nothing to search with. Unchanged when no language model is wanted.

        Raises:
            ProviderError: The model cannot be used, or answered something else: the transformation
                by rules is as good as before.
            DeadlineExceededError: There was not enough time.
        """
        if self._model is None or not config.enabled:
            return transformed
        question = _delimited(transformed.original)
        intent = transformed.intent
        if config.refine_intent:
            intent = self._model.answer(
                f"{question}\n{prompt('intent').task}",
                IntentAnswer,
                system=prompt("intent").system,
                deadline=deadline,
            ).intent
        answer = None
        if _wants_answer(intent, config):
            written = self._model.answer(
                f"{question}\n{prompt('hypothetical').task}",
                HypotheticalAnswer,
                system=prompt("hypothetical").system,
                deadline=deadline,
            ).answer
            answer = _searchable_answer(written, transformed.original)
        return replace(transformed, intent=intent, hypothetical_answer=answer)


def _wants_answer(intent: Intent, config: TransformationConfig) -> bool:
    return config.hyde and intent is Intent.ABSTRACT


def _delimited(question: str) -> str:
    """The question as data: bounded, and unable to close the element it stands in."""
    shown = as_data(_one_line(question)[:QUESTION_CHARS])
    return f"<pregunta>\n{shown}\n</pregunta>"


def _searchable_answer(written: str, question: str) -> str | None:
    """Clamp what a model wrote; None if it has no word or only says the question again."""
    # Some models quote what they write; what is far past the limit need not be cut into sentences.
    line = _one_line(written[: 4 * HYPOTHETICAL_CHARS]).strip(" \"'«»“”*")
    spans = sentences(line)[:HYPOTHETICAL_SENTENCES]
    answer = _shortened(line[: spans[-1].end]) if spans else ""
    if not any(map(str.isalnum, answer)) or normalize_query(answer) == normalize_query(question):
        return None
    return answer


def _shortened(text: str) -> str:
    """Keep whole words of a text that is too long."""
    if len(text) <= HYPOTHETICAL_CHARS:
        return text
    return text[: HYPOTHETICAL_CHARS + 1].rsplit(" ", 1)[0][:HYPOTHETICAL_CHARS]


def _one_line(text: str) -> str:
    """Fold white space and everything unprintable: control characters and lone surrogates."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
