"""Answers and judges the questions of an evaluation; failures are counted as missing values."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import structlog

from rag_resources.answers.answerers import Answerer, build_answerer
from rag_resources.answers.checking import CHECK_MODEL
from rag_resources.answers.citing import passages_of
from rag_resources.answers.language_model import AnswerOptions
from rag_resources.core.answers import Answer
from rag_resources.core.errors import (
    DeadlineExceededError,
    InvalidParameterError,
    ProviderUnavailableError,
    RagError,
)
from rag_resources.core.evaluation import QueryOutcome
from rag_resources.core.judging import (
    JudgedAnswer,
    JudgeInfo,
    Judgement,
    JudgeSummary,
    summarize_judgements,
)
from rag_resources.evaluation.judge import EmbeddedJudge, Judge, LanguageModelJudge
from rag_resources.languages.messages import _
from rag_resources.providers.model_server import MAX_CALLS
from rag_resources.providers.protocols import Embedder, LanguageModel
from rag_resources.resilience.breakers import CircuitBreaker

JUDGE_MODEL = "use_multilingual"
"""Model of the embedded judge, the same for all evaluations so that they can be compared."""

_NOTHING_CLAIMED = Judgement(faithfulness=None, answer_relevance=0.0)

_log = structlog.get_logger()


@dataclass(frozen=True)
class Judging:
    """The answerer, the judge, and how many questions run concurrently.

    After five consecutive questions without a server, questions are skipped for a minute instead of
    each waiting for its retries.
    """

    answerer: Answerer
    judge: Judge
    concurrency: int = 1
    language: str = "es"
    breaker: CircuitBreaker = field(default_factory=lambda: CircuitBreaker("judge"))

    @property
    def info(self) -> JudgeInfo:
        """What is stored about the judge with the results."""
        return JudgeInfo(self.judge.name, self.judge.model, self.judge.version, self.answerer.name)


def build_judging(
    name: str | None,
    *,
    embedder: Callable[[str], Embedder],
    language_model: LanguageModel | None,
    language: str = "es",
    options: AnswerOptions = AnswerOptions(),  # noqa: B008 - immutable
) -> Judging | None:
    """Build the judging for a judge's name; None if no name is given.

    If a language model is configured, it writes the answers for both judges.

    Args:
        name: `embedded` or `llm`; None or empty for no judging.
        embedder: Returns the embedder of a model, by name.
        language_model: None if none is configured.
        language: Of the questions and of the answers.
        options: How a language model's answers are made.

    Raises:
        InvalidParameterError: The name is unknown, or needs a language model that is missing.
    """
    if not name:
        return None
    answerer = build_answerer(
        language_model, lambda: embedder(CHECK_MODEL), options, language=language
    )
    concurrency = MAX_CALLS if language_model else 1
    if name == EmbeddedJudge.name:
        return Judging(answerer, EmbeddedJudge(embedder(JUDGE_MODEL)), concurrency, language)
    if name != LanguageModelJudge.name:
        raise InvalidParameterError(
            _("“{name}” is no judge. There are: embedded and llm.").format(name=name), judge=name
        )
    if language_model is None:
        raise InvalidParameterError(
            _("The judge “llm” needs a language model: set LLM_MODEL."), judge=name
        )
    return Judging(answerer, LanguageModelJudge(language_model), concurrency, language)


def judge_outcomes(
    judging: Judging,
    outcomes: Sequence[QueryOutcome],
    progress: Callable[[int], None] = lambda _: None,
) -> JudgeSummary:
    """Answer every question that found passages, and judge the answers.

    An answer that cannot be made or judged becomes a missing value with its reason.

    Args:
        judging: Who answers and judges.
        outcomes: Those of all questions, with the passages they found.
        progress: Called with 1 after each outcome.
    """
    answers: dict[str, JudgedAnswer] = {}
    with ThreadPoolExecutor(judging.concurrency, thread_name_prefix="judging") as threads:
        judged = threads.map(lambda outcome: _judged(judging, outcome), outcomes)
        for outcome, item in zip(outcomes, judged, strict=True):
            if item:
                answers[outcome.key] = item
            progress(1)
    return summarize_judgements(judging.info, answers)


def _judged(judging: Judging, outcome: QueryOutcome) -> JudgedAnswer | None:
    if not outcome.context:
        return None
    question = outcome.golden.query
    passages = [result.expanded_content for result in outcome.context]
    answer: Answer | None = None
    try:
        with judging.breaker.guard(_is_away):
            answer = judging.answerer.answer(
                question, passages_of(outcome.context, judging.language)
            )
            if not answer.found:
                return JudgedAnswer(answer, _NOTHING_CLAIMED)
            return JudgedAnswer(answer, judging.judge.judge(question, answer.text, passages))
    except RagError as error:
        _log.warning(
            "judging_failed",
            judge=judging.judge.name,
            answered=answer is not None,
            error=type(error).__name__,
        )
        reason = (
            _("The answer could not be judged: {reason}")
            if answer
            else _("The answer could not be written: {reason}")
        )
        return JudgedAnswer(answer, None, reason.format(reason=error.message))


def _is_away(error: Exception) -> bool:
    return isinstance(error, ProviderUnavailableError | DeadlineExceededError)
