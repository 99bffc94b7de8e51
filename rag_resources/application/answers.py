"""Use cases of answers with citations."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rag_resources.answers.answerers import Written, write_answer
from rag_resources.answers.citing import cite, passages_of
from rag_resources.core.citations import CitedAnswer
from rag_resources.core.deadline import Deadline
from rag_resources.core.types import RetrievalResponse
from rag_resources.database.pool import Database
from rag_resources.providers.protocols import LanguageModel
from rag_resources.retrieval.pipeline import DEADLINE_MS
from rag_resources.settings import Settings

if TYPE_CHECKING:
    from rag_resources.application.wiring import Answered


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer with citations, and the retrieval that it was made from."""

    answer: CitedAnswer
    retrieval: "Answered"

    def reworded(self, render: Callable[[str], str]) -> "Asked":
        """Return it with everything that is told of it in other words."""
        answer, retrieval = self.answer, self.retrieval
        return Asked(
            replace(answer, notice=render(answer.notice)),
            replace(retrieval, response=retrieval.response.reworded(render)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form of the command line."""
        response = self.retrieval.response
        return self.answer.to_json() | {
            "metadata": {
                "configuration": self.retrieval.configuration,
                "model": response.model,
                "passages": len(response.results),
                "stages": dict(response.stages),
                "degraded": list(response.degraded),
                "messages": list(response.messages),
            },
            "confidence": response.confidence.to_json() if response.confidence else None,
            "error": response.error,
        }


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers from the notes of one tenant.

    Attributes:
        retrieve: As `Application.retrieve`.
        language_model: Writes the answers; None for sentences of the notes.
    """

    database: Database
    settings: Settings
    retrieve: "Callable[..., Answered]"
    language_model: LanguageModel | None

    def ask(self, question: str, *, language: str | None = None, **search: Any) -> Asked:
        """Answer a question with sentences that cite the notes.

        Args:
            question: See `retrieve`.
            language: Of the question and of the answer; None uses the settings'.
            search: The other arguments of `retrieve`.

        Raises:
            InvalidInputError: An argument is invalid; the message names it.
            DatabaseError: The notes cannot be read again, to check what is cited.
        """
        retrieved = self.retrieve(question, language=language, **search)
        response = retrieved.response
        written = write_answer(
            question,
            passages_of(response.results),
            language_model=self.language_model,
            language=self.settings.answer_language if language is None else language,
        )
        if written.failure:
            response = replace(response, messages=(*response.messages, written.failure))
        return Asked(
            self._cited(question, written, response), replace(retrieved, response=response)
        )

    def _cited(self, question: str, written: Written, response: RetrievalResponse) -> CitedAnswer:
        if not written.answer.found:
            return CitedAnswer(question, (), written.answerer, written.answer.text)
        # It has its own time, since a language model may have taken a minute.
        deadline = Deadline.after(DEADLINE_MS, time.monotonic)
        with self.database.snapshot(deadline) as connection:
            return cite(
                connection, question, written.answer, response.results, answerer=written.answerer
            )
