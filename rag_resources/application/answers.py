"""Use cases of answers with citations."""

import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rag_resources.answers.answerers import (
    Answerer,
    ExtractiveAnswerer,
    Telling,
    build_answerer,
    write_answer,
)
from rag_resources.answers.checking import CHECK_MODEL
from rag_resources.answers.citing import cite, passages_of
from rag_resources.answers.language_model import (
    PEOPLE_TEMPERATURE,
    AnswerOptions,
    StoredAnswer,
)
from rag_resources.application.asked import AnswerMetadata, Asked
from rag_resources.application.confidence import AnswerJudgement
from rag_resources.core.answers import NOT_FOUND, CitedSentence
from rag_resources.core.citations import AnswerSentence, CitedAnswer
from rag_resources.core.confidence import Confidence
from rag_resources.core.deadline import Deadline
from rag_resources.core.messages import Message
from rag_resources.core.types import RetrievalResponse
from rag_resources.database.pool import Database
from rag_resources.providers.cache import Cache
from rag_resources.providers.protocols import Embedder, LanguageModel
from rag_resources.retrieval.pipeline import DEADLINE_MS
from rag_resources.settings import Settings

if TYPE_CHECKING:
    from rag_resources.application.wiring import Answered

__all__ = ["AnswerMetadata", "Answers", "Asked"]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers from the notes of one tenant.

    Attributes:
        retrieve: As `Application.retrieve`.
        language_model: Writes the answers; None for sentences of the notes.
        embedder: Returns the embedder of a model, by name.
        stored: What the language model wrote before.
        judge: As `Confidences.judge_answer`.
        log: Called with each whole answer and its language; neither waits nor fails.
    """

    database: Database
    settings: Settings
    retrieve: "Callable[..., Answered]"
    language_model: LanguageModel | None
    embedder: Callable[[str], Embedder]
    stored: Cache[StoredAnswer]
    judge: Callable[..., AnswerJudgement]
    log: Callable[[Asked, str], None]

    def ask(self, question: str, *, language: str | None = None, **search: Any) -> Asked:
        """Answer a question with sentences that cite the notes. As `stream`, without the way."""
        *_, asked = self.stream(question, language=language, **search)
        assert isinstance(asked, Asked)
        return asked

    def stream(
        self, question: str, *, language: str | None = None, **search: Any
    ) -> Generator[AnswerSentence | Asked, None, None]:
        """Answer a question sentence by sentence; each is checked and cites the notes.

        Closing the generator ends the work, also that of a language model.

        Args:
            question: See `retrieve`.
            language: Of the question and of the answer; None uses the settings'.
            search: The other arguments of `retrieve`.

        Yields:
            Each sentence, in reading order, as soon as it is checked; then the whole.

        Raises:
            InvalidInputError: An argument is invalid; the message names it.
            DatabaseError: The notes cannot be read again, to check what is cited.
        """
        told_in = self.settings.answer_language if language is None else language
        retrieved = self.retrieve(question, language=language, **search)
        response = retrieved.response
        started = time.monotonic()
        judged = self._judged(question, retrieved, told_in, search)
        is_silent = judged is not None and judged.silence.is_silent
        written, telling = write_answer(
            question,
            () if is_silent else passages_of(response.results, told_in),
            self._answerer(told_in),
            language=told_in,
        )
        kept: list[AnswerSentence] = []
        waits_ms: list[float] = []
        with closing(written):
            for sentence in written:
                for cited in self._cited(sentence, response):
                    waits_ms.append(_ms_since(started))
                    kept.append(cited)
                    yield cited
        stages = {"answer": _ms_since(started)} | (
            {"first_sentence": waits_ms[0]} if waits_ms else {}
        )
        asked = self._finished(question, retrieved, kept, telling, stages)
        if judged is not None:
            asked = replace(
                asked,
                confidence=_confidence(judged, response, telling, told_in, is_answered=bool(kept)),
                silence=judged.silence,
            )
        self.log(asked, told_in)
        yield asked

    def _judged(
        self, question: str, retrieved: "Answered", language: str, search: dict[str, Any]
    ) -> AnswerJudgement | None:
        """Return whether to answer, and how sure that is; None if there is nothing to judge."""
        response, filters = retrieved.response, search.get("filters")
        if response.error or not response.results or retrieved.config is None:
            return None
        return self.judge(
            question,
            retrieved.config,
            response,
            is_filtered=filters is not None and not filters.is_empty,
            top_k=search.get("top_k"),
            language=language,
        )

    def _answerer(self, language: str) -> Answerer:
        """Return what answers people."""
        return build_answerer(
            self.language_model,
            lambda: self.embedder(CHECK_MODEL),
            AnswerOptions(
                self.settings.answer_context_tokens,
                self.settings.answer_unsupported == "mark",
                PEOPLE_TEMPERATURE,
            ),
            language=language,
            stored=self.stored,
        )

    def _cited(self, sentence: CitedSentence, response: RetrievalResponse) -> list[AnswerSentence]:
        """Return the sentence with its citations; nothing if the notes no longer say it."""
        # It has its own time, since a language model may have taken a minute.
        deadline = Deadline.after(DEADLINE_MS, time.monotonic)
        with self.database.snapshot(deadline) as connection:
            return cite(connection, [sentence], response.results)

    def _finished(
        self,
        question: str,
        retrieved: "Answered",
        sentences: list[AnswerSentence],
        telling: Telling,
        stages: dict[str, float],
    ) -> Asked:
        """Return the whole answer, with what is told of it."""
        response = retrieved.response
        notice = "" if sentences else NOT_FOUND.text
        if telling.failure:
            response = replace(response, messages=(*response.messages, telling.failure))
        ending = telling.writing.ending
        scores = [result.score for result in response.results]
        metadata = AnswerMetadata(
            model=self.language_model.name if self.language_model else None,
            prompt_tokens=ending.prompt_tokens if ending else None,
            completion_tokens=ending.completion_tokens if ending else None,
            mean_similarity=fmean(scores) if scores else None,
            stages={**response.stages, **stages},
            dropped=telling.writing.dropped,
            is_cached=telling.writing.is_cached,
        )
        return Asked(
            CitedAnswer(question, tuple(sentences), telling.answerer, notice),
            replace(retrieved, response=response),
            metadata,
            telling.interruption,
        )


def _confidence(
    judged: AnswerJudgement,
    response: RetrievalResponse,
    telling: Telling,
    language: str,
    *,
    is_answered: bool,
) -> Confidence | None:
    """Return how sure an answer and the passages are that it was made from."""
    found = response.confidence
    own = judged.confidence if is_answered else Confidence({})
    if own.bands and telling.answerer != ExtractiveAnswerer(language).name:
        own = Confidence({}, Message.CONFIDENCE_ANSWERER.format())
    bands = {**(found.bands if found else {}), **own.bands}
    missing = own.missing if is_answered else (found.missing if found else None)
    return Confidence(bands, None if bands else missing)


def _ms_since(started: float) -> float:
    return (time.monotonic() - started) * 1_000
