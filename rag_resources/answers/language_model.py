"""Answers of a language model, written within a schema; each sentence is checked at once."""

import json
import re
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, Literal

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from rag_resources.answers.checking import SupportChecker
from rag_resources.answers.prompting import PROMPT_FORM, answer_prompt
from rag_resources.core.answers import CONTEXT_TOKENS, Answer, CitedSentence, fitted
from rag_resources.core.configuration import canonical_hash
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import InvalidAnswerError
from rag_resources.core.quotation import SourcePassage
from rag_resources.languages.messages import _
from rag_resources.prompts import prompt
from rag_resources.providers.inputs import clean
from rag_resources.providers.protocols import Ending, LanguageModel, Sampling

CALL_MS = 60_000.0
"""Longest wait for a language model; long, because no user waits for an evaluation."""
MAX_ANSWER_CHARS = 2_000
MAX_ANSWER_TOKENS = 500
PEOPLE_TEMPERATURE = 0.3

_BEGINNING = re.compile(r"\{\s*\"sentences\"\s*:\s*\[")
_BETWEEN = re.compile(r"[\s,]*")

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """How a language model's answers are made.

    Attributes:
        context_tokens: Most tokens of passages that the model gets.
        temperature: 0 for evaluations.
    """

    context_tokens: int = CONTEXT_TOKENS
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class Writing:
    """How an answer was written; known at its end.

    Attributes:
        ending: The server's final report; None if no language model wrote the answer.
        dropped: Sentences that were left out, because their sources do not support them.
    """

    ending: Ending | None = None
    dropped: int = 0


class _Sentence(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    citations: list[int]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sentences: list[Any]


def today() -> date:
    """Return the current date of this machine."""
    return datetime.now(tz=UTC).astimezone().date()


class LanguageModelAnswerer:
    """Answers in a language model's words; each sentence cites the ranges that support it.

    Args:
        language_model: Safe to use from several threads.
        checker: Finds the ranges of the cited passages that support a sentence.
        options: How answers are made.
        timeout_ms: Longest wait for an answer.
        language: Of the questions and of the answers.
        current_day: The date that the model is told.
    """

    def __init__(
        self,
        language_model: LanguageModel,
        checker: SupportChecker,
        options: AnswerOptions = AnswerOptions(),
        *,
        timeout_ms: float = CALL_MS,
        language: str = "es",
        current_day: Callable[[], date] = today,
    ) -> None:
        self._model = language_model
        self._checker = checker
        self._options = options
        self._timeout_ms = timeout_ms
        self._language = language
        self._current_day = current_day
        self._prompt = prompt("answer", language)

    @property
    def name(self) -> str:
        """The answerer's name and version, stored with its answers."""
        made_by = [PROMPT_FORM, asdict(self._options), MAX_ANSWER_TOKENS, self._checker.version]
        return f"{self._model.name} {self._prompt.version}-{canonical_hash(made_by)[:8]}"

    def answer(self, question: str, passages: Sequence[SourcePassage]) -> Answer:
        """Answer a question. Same errors as `stream`.

        Returns:
            One without sentences if the model finds no answer, or none that its sources support.
        """
        return Answer(tuple(self.stream(question, passages)))

    def stream(
        self,
        question: str,
        passages: Sequence[SourcePassage],
        *,
        on_end: Callable[[Writing], None] = lambda _: None,
    ) -> Generator[CitedSentence, None, None]:
        """Answer a question sentence by sentence, each checked, in reading order.

        Closing the generator early ends the request to the model.

        Args:
            question: The question.
            passages: At least one, best first.
            on_end: Called after the last sentence.

        Raises:
            InvalidAnswerError: The answer has the wrong form or cites a missing passage.
            ProviderError: The model cannot be used.
            DeadlineExceededError: The answer came too late.
        """
        context = self._context(passages)
        asked = answer_prompt(
            question,
            context,
            self._prompt,
            today=self._current_day(),
            language=self._language,
        )
        shape, sentence_shape = _shapes(len(context))
        reader, endings = SentenceReader(), list[Ending]()
        texts: set[str] = set()
        dropped, room = 0, MAX_ANSWER_CHARS
        pieces = self._model.stream(
            asked,
            shape=shape,
            system=self._prompt.system,
            sampling=Sampling(self._options.temperature, MAX_ANSWER_TOKENS),
            on_end=endings.append,
            deadline=Deadline.after(self._timeout_ms, time.monotonic),
        )
        with closing(pieces):
            for piece in pieces:
                for item in reader.add(piece):
                    written = self._valid(item, sentence_shape)
                    text = " ".join(clean(written.text).split())[:room]
                    if not text or text in texts:
                        continue
                    texts.add(text)
                    cited = self._checked(question, text, written.citations, context)
                    if cited is None:
                        dropped += 1
                        continue
                    room -= len(text)
                    yield cited
        (ending,) = endings
        if not ending.is_cut:
            from rag_resources.providers.server_models import parsed  # loads httpx

            parsed(reader.text, shape, model=self._model.name)
        on_end(Writing(ending, dropped))

    def _context(self, passages: Sequence[SourcePassage]) -> list[SourcePassage]:
        texts = fitted([own.text for own in passages], self._options.context_tokens)
        return [replace(own, text=text) for own, text in zip(passages, texts, strict=False)]

    def _valid(self, item: Any, shape: type[_Sentence]) -> _Sentence:
        try:
            return shape.model_validate(item)
        except ValidationError:
            # Raised without its cause, which holds the answer, which may quote the question.
            message = _("The model {model} did not answer in the form that was asked for.").format(
                model=self._model.name
            )
            raise InvalidAnswerError(message, model=self._model.name) from None

    def _checked(
        self, question: str, text: str, ranks: Sequence[int], context: Sequence[SourcePassage]
    ) -> CitedSentence | None:
        """Return a sentence with what supports it; None if it is dropped."""
        cited = [(rank, context[rank - 1].text) for rank in dict.fromkeys(ranks)]
        sources = self._checker.support(question, text, cited)
        if not sources:
            _log.info("sentence_not_supported", model=self._model.name)
            return None
        first, *others = sources
        return CitedSentence(text, first.rank, first.span, tuple(others))


@cache
def _shapes(count: int) -> tuple[type[BaseModel], type[_Sentence]]:
    """Return the schemas of an answer and of a sentence that can cite only these passages."""
    numbers: Any = Literal[tuple(range(1, count + 1))]
    sentence = create_model(
        "Sentence", __base__=_Sentence, citations=(list[numbers], Field(min_length=1))
    )
    answer = create_model("Answer", __base__=_Reply, sentences=(list[sentence], ...))
    return answer, sentence


class SentenceReader:
    """Reads `{"sentences": [...]}` piece by piece, and returns each item as soon as it is complete.

    Other JSON gives no items; the caller must check whether the whole is valid.
    """

    def __init__(self) -> None:
        self._decoder = json.JSONDecoder()
        self._position: int | None = None
        self.text = ""

    def add(self, piece: str) -> list[Any]:
        """Take the next piece, and return the items that it completes."""
        self.text += piece
        if self._position is None:
            beginning = _BEGINNING.search(self.text)
            if not beginning:
                return []
            self._position = beginning.end()
        found: list[Any] = []
        while (item := self._next(self._position)) is not None:
            value, self._position = item
            found.append(value)
        return found

    def _next(self, position: int) -> tuple[Any, int] | None:
        between = _BETWEEN.match(self.text, position)
        start = between.end() if between else position
        # Anything but an object could still grow: a number may get another digit.
        if not self.text.startswith("{", start):
            return None
        try:
            return self._decoder.raw_decode(self.text, start)
        except (ValueError, RecursionError):
            return None
