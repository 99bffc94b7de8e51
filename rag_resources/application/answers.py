"""Use cases of answers with citations."""

import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field, replace
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
from rag_resources.application.confidence import AnswerJudgement
from rag_resources.core.answers import NOT_FOUND, CitedSentence
from rag_resources.core.citations import AnswerSentence, CitedAnswer
from rag_resources.core.confidence import Confidence, Silence
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


@dataclass(frozen=True, slots=True)
class AnswerMetadata:
    """What an answer took.

    Attributes:
        model: The language model that was asked; None if none is configured.
        prompt_tokens: As its server counts them; None if it does not, or wrote nothing.
        completion_tokens: Likewise.
        mean_similarity: Mean score of the passages, in [0, 1]; None without passages.
        stages: Milliseconds by stage, of the retrieval and of the answer: `first_sentence` and
            `answer`, both since the retrieval ended.
        dropped: Sentences that were left out, because their sources do not say them.
        is_cached: Whether the model had written the same answer before.
    """

    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    mean_similarity: float | None = None
    stages: dict[str, float] = field(default_factory=dict)
    dropped: int = 0
    is_cached: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form."""
        prompt, completion = self.prompt_tokens, self.completion_tokens
        tokens = None
        if prompt is not None or completion is not None:
            tokens = {"prompt": prompt, "completion": completion}
        return {
            "model": self.model,
            "tokensUsed": tokens,
            "meanSimilarity": self.mean_similarity,
            "stages": self.stages,
            "droppedSentences": self.dropped,
            "cachedAnswer": self.is_cached,
        }


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer with citations, and the retrieval that it was made from.

    Attributes:
        interruption: Why the answer ends early, and what was kept; None if it is complete.
        confidence: How sure it is; None if nothing was found to answer from.
        silence: Whether an answer was withheld; None likewise.
    """

    answer: CitedAnswer
    retrieval: "Answered"
    metadata: AnswerMetadata = field(default_factory=AnswerMetadata)
    interruption: str | None = None
    confidence: Confidence | None = None
    silence: Silence | None = None

    @property
    def error(self) -> str | None:
        """Why there is no complete answer; None if there is."""
        return self.retrieval.response.error or self.interruption

    def reworded(self, render: Callable[[str], str]) -> "Asked":
        """Return it with everything that is told of it in other words."""
        answer, retrieval = self.answer, self.retrieval
        return replace(
            self,
            answer=replace(answer, notice=render(answer.notice)),
            retrieval=replace(retrieval, response=retrieval.response.reworded(render)),
            interruption=None if self.interruption is None else render(self.interruption),
            confidence=self.confidence.reworded(render) if self.confidence else None,
            silence=self.silence.reworded(render) if self.silence else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form of the command line."""
        response = self.retrieval.response
        return self.answer.to_json() | {
            "metadata": {
                "configuration": self.retrieval.configuration,
                "embeddingModel": response.model,
                "passages": len(response.results),
                "degraded": list(response.degraded),
                "messages": list(response.messages),
                **self.metadata.to_json(),
            },
            "confidence": self.confidence.to_json() if self.confidence else None,
            "silence": self.silence.to_json() if self.silence else None,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers from the notes of one tenant.

    Attributes:
        retrieve: As `Application.retrieve`.
        language_model: Writes the answers; None for sentences of the notes.
        embedder: Returns the embedder of a model, by name.
        stored: What the language model wrote before.
        judge: As `Confidences.judge_answer`.
    """

    database: Database
    settings: Settings
    retrieve: "Callable[..., Answered]"
    language_model: LanguageModel | None
    embedder: Callable[[str], Embedder]
    stored: Cache[StoredAnswer]
    judge: Callable[..., AnswerJudgement]

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
        if judged is None:
            yield asked
        else:
            yield replace(
                asked,
                confidence=_confidence(judged, response, telling, told_in, is_answered=bool(kept)),
                silence=judged.silence,
            )

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
