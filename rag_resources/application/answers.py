"""Use cases of answers with citations."""

import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import fmean
from typing import Any
from uuid import UUID

from rag_resources.answers.answerers import (
    Answerer,
    QuotationAnswerer,
    Telling,
    build_answerer,
    write_answer,
)
from rag_resources.answers.checking import CHECK_MODEL
from rag_resources.answers.citing import cite, passages_of
from rag_resources.answers.language_model import (
    PEOPLE_TEMPERATURE,
    AnswerOptions,
)
from rag_resources.answers.reading import QuestionReader
from rag_resources.application.asked import AnswerMetadata, Asked
from rag_resources.application.confidence import AnswerJudgement
from rag_resources.application.searching import Searched, search_as_read
from rag_resources.application.wiring import Answered
from rag_resources.core.answers import CitedSentence
from rag_resources.core.citations import AnswerSentence, CitedAnswer
from rag_resources.core.confidence import Confidence
from rag_resources.core.deadline import Deadline
from rag_resources.core.note_labels import note_label
from rag_resources.core.quoting import shown
from rag_resources.core.types import RetrievalResponse, RetrievalResult
from rag_resources.database.pool import Database
from rag_resources.languages.messages import _, joined
from rag_resources.providers.protocols import Embedder, LanguageModel
from rag_resources.retrieval.pipeline import DEADLINE_MS
from rag_resources.retrieval.request import check_query
from rag_resources.settings import Settings

_NEAREST = 3
"""Passages that are shown where no note of a period answers."""

__all__ = ["AnswerMetadata", "Answers", "Asked"]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers from the notes of one tenant.

    Attributes:
        retrieve: `Application.retrieve`.
        language_model: Writes the answers; None for sentences of the notes.
        embedder: Returns the embedder of a model, by name.
        judge: `Confidences.judge_answer`.
        log: Called with each whole answer and its language; neither waits nor fails.
    """

    database: Database
    settings: Settings
    retrieve: Callable[..., Answered]
    language_model: LanguageModel | None
    embedder: Callable[[str], Embedder]
    judge: Callable[..., AnswerJudgement]
    log: Callable[[Asked, str], None]

    def ask(self, question: str, *, language: str | None = None, **options: Any) -> Asked:
        """Answer a question with sentences that cite the notes; as `stream`, but all at once."""
        *_, asked = self.stream(question, language=language, **options)
        assert isinstance(asked, Asked)
        return asked

    def stream(
        self,
        question: str,
        *,
        language: str | None = None,
        conversation: Sequence[str] = (),
        ignored: Collection[str] = (),
        **search: Any,
    ) -> Generator[AnswerSentence | Asked, None, None]:
        """Answer a question sentence by sentence; each is checked and cites the notes.

        Closing the generator ends the work, also that of a language model.

        Args:
            question: See `retrieve`.
            language: Of the question and of the answer; None uses the settings'.
            conversation: The earlier questions, as they were searched, oldest first.
            ignored: Conditions that the question implies and that were revoked, by their text.
            search: The other arguments of `retrieve`; its filters always hold.

        Yields:
            Each sentence, in reading order, as soon as it is checked; then the whole.

        Raises:
            InvalidInputError: An argument is invalid; the message names it.
            DatabaseError: The notes cannot be read again to check the citations.
        """
        check_query(question)
        told_in = self.settings.answer_language if language is None else language
        search = {**search, "language": language}
        reading = QuestionReader(self.database, self.language_model, self.settings.timezone).read(
            question,
            language=told_in,
            turns=conversation,
            filters=search.get("filters"),
            ignored=ignored,
        )
        found = search_as_read(reading, self.retrieve, search)
        yield from self._answered(question, found, told_in)

    def _answered(
        self, question: str, searched: Searched, language: str
    ) -> Generator[AnswerSentence | Asked, None, None]:
        """Answer from the retrieved passages; yields as `stream` does."""
        response = searched.retrieved.response
        reading = searched.reading
        focus = reading.focus
        asks = reading.searched if self.language_model else focus
        started = time.monotonic()
        judged = self._judged(focus, searched, language)
        is_silent = judged is not None and judged.silence.is_silent
        written, telling = write_answer(
            asks,
            () if is_silent else passages_of(response.results, language),
            self._answerer(language),
            language=language,
            focus=focus,
        )
        kept: list[AnswerSentence] = []
        waits_ms: list[float] = []
        with closing(self._said(focus, written, searched, language)) as said:
            for cited in said:
                waits_ms.append(_ms_since(started))
                kept.append(cited)
                yield cited
        stages = {"answer": _ms_since(started)} | (
            {"first_sentence": waits_ms[0]} if waits_ms else {}
        )
        asked = self._finished(question, searched, kept, telling, stages)
        if judged is not None:
            asked = replace(
                asked,
                confidence=_confidence(judged, response, telling, language, is_answered=bool(kept)),
                silence=judged.silence,
            )
        self.log(asked, language)
        yield asked

    def _said(
        self,
        question: str,
        written: Generator[CitedSentence, None, None],
        searched: Searched,
        language: str,
    ) -> Generator[AnswerSentence, None, None]:
        """Yield the sentences with citations; if the question names several files, from each."""
        response, notes = searched.retrieved.response, set[UUID]()
        unmet = searched.reading.unmet
        with closing(written):
            for sentence in written:
                for cited in self._cited(sentence, response.results):
                    made_at = cited.citations[0].created_at or datetime.now(UTC)
                    local = made_at.astimezone(self.settings.timezone)
                    if unmet and not unmet.is_named_in(cited.marked, language, local):
                        continue
                    notes |= {citation.note_id for citation in cited.citations}
                    yield cited
        for results in searched.files:
            if notes & {own.note_id for own in results}:
                continue
            found = QuotationAnswerer(language).answer(question, passages_of(results, language))
            for sentence in found.sentences[:1]:
                yield from self._cited(sentence, results)

    def _judged(self, question: str, searched: Searched, language: str) -> AnswerJudgement | None:
        """Return whether to answer, and with which confidence; None if nothing was found."""
        retrieved, search = searched.retrieved, searched.search
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
        """Return the answerer for readers."""
        return build_answerer(
            self.language_model,
            lambda: self.embedder(CHECK_MODEL),
            AnswerOptions(self.settings.answer_context_tokens, PEOPLE_TEMPERATURE),
            language=language,
        )

    def _cited(
        self, sentence: CitedSentence, results: Sequence[RetrievalResult]
    ) -> list[AnswerSentence]:
        """Return the sentence with its citations; nothing if the notes no longer say it."""
        # With its own deadline, since a language model may have taken a minute.
        deadline = Deadline.after(DEADLINE_MS, time.monotonic)
        with self.database.snapshot(deadline) as connection:
            return cite(connection, [sentence], results)

    def _finished(
        self,
        question: str,
        searched: Searched,
        sentences: list[AnswerSentence],
        telling: Telling,
        stages: dict[str, float],
    ) -> Asked:
        """Return the whole answer, with its metadata and messages."""
        response = searched.retrieved.response
        notice = (
            ""
            if sentences
            else _("I found no relevant information in your notes about this question.")
        )
        period = searched.reading.period
        if period and response.results and not sentences:
            nearest = (
                f"- {note_label(own.title, own.external_id, own.note_id)}: {shown(own.content)}"
                for own in response.results[:_NEAREST]
            )
            nothing = _(
                "No note of {period} answers it. To search without this condition, ignore "
                "“{text}”. Nearest:"
            ).format(period=period.shown, text=period.text)
            notice = joined("\n", [nothing, *nearest])
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
        )
        return Asked(
            CitedAnswer(question, tuple(sentences), telling.answerer, notice),
            replace(searched.retrieved, response=response),
            searched.reading,
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
    """Return the confidence of an answer and of the passages that it was made from."""
    found = response.confidence
    own = judged.confidence if is_answered else Confidence({})
    if own.bands and telling.answerer != QuotationAnswerer(language).name:
        own = Confidence(
            {},
            _(
                "it was measured with another way of answering, or in another language (“rag "
                "calibrate” repeats it)"
            ).format(),
        )
    bands = {**(found.bands if found else {}), **own.bands}
    missing = own.missing if is_answered else (found.missing if found else None)
    return Confidence(bands, None if bands else missing)


def _ms_since(started: float) -> float:
    return (time.monotonic() - started) * 1_000
