"""The confidence of responses: calibrates it, and applies the calibration to each response."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg
import structlog
from pydantic import ValidationError

from rag_resources.core.calibration import Calibrated
from rag_resources.core.confidence import (
    OF_ANSWERS,
    Confidence,
    Silence,
    confidence_of,
    silence_of,
)
from rag_resources.core.confidence_signals import answer_signals, signals_of
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import RagError
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.types import RetrievalResponse
from rag_resources.database.pool import Database
from rag_resources.evaluation.answering import told_from
from rag_resources.evaluation.calibration import (
    PresentCalibration,
    read_calibration,
    train_calibration,
)
from rag_resources.languages.messages import _
from rag_resources.providers.cache import Cache, Limits, MemoryCache
from rag_resources.retrieval.pipeline import DEADLINE_MS, RetrievalPipeline
from rag_resources.settings import Settings

CALIBRATIONS = Limits(entries=100, lifetime_s=60)
"""How long a calibration is cached: a new or stale one is noticed within a minute."""

_log = structlog.get_logger()


def _cache() -> Cache[PresentCalibration]:
    return MemoryCache(CALIBRATIONS)


@dataclass(frozen=True, slots=True)
class AnswerJudgement:
    """The judgement of an answer before it is written.

    Attributes:
        confidence: The confidence of its first citation, for quotations.
        silence: Whether the answer is withheld.
    """

    confidence: Confidence
    silence: Silence


def _unjudged(missing: str | None) -> AnswerJudgement:
    return AnswerJudgement(Confidence({}, missing), Silence(is_silent=False, missing=missing))


@dataclass(frozen=True, slots=True)
class Confidences:
    """Calibrates and judges the responses of a database; thread-safe.

    Attributes:
        pipeline: Makes or returns the pipeline that is measured.
    """

    database: Database
    settings: Settings
    pipeline: Callable[[], RetrievalPipeline]
    _known: Cache[PresentCalibration] = field(default_factory=_cache)

    def calibrate(
        self,
        config: RetrievalConfig,
        *,
        unanswerable: tuple[GoldenEntry, ...] = (),
        tag: str | None = None,
        progress: Callable[[int], None] = lambda _: None,
    ) -> Calibrated:
        """Measure and store how often a configuration's responses are right.

        Raises:
            RagError: See `train_calibration`.
        """
        return train_calibration(
            self.database,
            self.pipeline(),
            config,
            unanswerable=unanswerable,
            tag=tag,
            language=self.settings.answer_language,
            settings=self.settings.search,
            progress=progress,
        )

    def judge(
        self,
        query: str,
        config: RetrievalConfig,
        response: RetrievalResponse,
        *,
        is_filtered: bool,
        top_k: int | None,
        deadline: Deadline,
    ) -> Confidence | None:
        """Return the confidence of a response; None if it has no results.

        A response that was not made like the measured ones has no confidence: with filters,
        without a stage, or with fewer results than the configuration gives.

        Args:
            query: The question.
            config: How it was searched.
            response: The retrieval's response.
            is_filtered: Whether filters restricted the search.
            top_k: The requested number of results; None is the configuration's.
            deadline: For reading the calibration. If it cannot be read, the confidence says so.
        """
        final = config.top_k.final
        if response.error or not response.results:
            return None
        found = self._present(config, deadline)
        if found.calibration is None:
            return Confidence({}, found.missing)
        if is_filtered or response.degraded or (top_k is not None and top_k < final):
            return Confidence(
                {},
                _(
                    "it is measured without filters, with every stage and with all results of the "
                    "configuration"
                ).format(),
            )
        # In the language of the measurement, whatever the language of this question.
        language = self.settings.answer_language
        signals = signals_of(query, response.results, final=final, language=language)
        return confidence_of(found.calibration, signals)

    def judge_answer(
        self,
        query: str,
        config: RetrievalConfig,
        response: RetrievalResponse,
        *,
        is_filtered: bool,
        top_k: int | None,
        language: str,
    ) -> AnswerJudgement:
        """Return whether a question is answered, and the confidence of its answer.

        An answer is neither withheld nor given a confidence if its response was not made like the
        measured ones: with filters, without a stage, with another number of results, or in a
        language whose signals are computed differently.

        Args:
            query: The question.
            config: How it was searched.
            response: The retrieval's response; it has results.
            is_filtered: Whether filters restricted the search.
            top_k: The requested number of results; None is the configuration's.
            language: The question's language.
        """
        found = self._present(config, Deadline.after(DEADLINE_MS, time.monotonic))
        if found.calibration is None:
            return _unjudged(found.missing)
        is_other = is_filtered or response.degraded or top_k not in (None, config.top_k.final)
        if is_other or found.calibration.answerer != told_from(language):
            return _unjudged(
                _(
                    "it is measured without filters, with every stage and with all results of the "
                    "configuration"
                ).format()
                if is_other
                else _(
                    "it was measured with another way of answering, or in another language (“rag "
                    "calibrate” repeats it)"
                ).format()
            )
        from rag_resources.answers.answerers import QuotationAnswerer
        from rag_resources.answers.citing import passages_of

        signals = answer_signals(
            query,
            response.results,
            QuotationAnswerer(language).ranked(query, passages_of(response.results, language)),
            language,
        )
        if signals is None:
            return AnswerJudgement(Confidence({}), Silence(is_silent=True))
        silence = silence_of(
            found.calibration, signals, allowed_misses=self.settings.answer_allowed_misses
        )
        nothing = _("nothing that is known of an answer tells whether it is right").format()
        confidence = confidence_of(found.calibration, signals, OF_ANSWERS)
        return AnswerJudgement(
            confidence if confidence.bands else Confidence({}, nothing),
            silence or Silence(is_silent=False, missing=nothing),
        )

    def _present(self, config: RetrievalConfig, deadline: Deadline) -> PresentCalibration:
        known = self._known.get(config.config_hash)
        if known is not None:
            return known
        try:
            with self.database.transaction(deadline) as connection:
                found = read_calibration(connection, config, settings=self.settings.search)
        except (RagError, psycopg.Error, ValidationError) as error:
            _log.warning("confidence_unreadable", error=type(error).__name__)
            return PresentCalibration(None, _("it could not be read").format())
        self._known.put(config.config_hash, found)
        return found
