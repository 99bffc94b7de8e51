"""Answers the questions of an evaluation, with their notes and without, and judges the citations.

The figures are made in `core.answer_metrics`. Judging what answers say belongs in
`evaluation.judging`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import NAMESPACE_URL, UUID, uuid5

from rag_resources.answers.answerers import QuotationAnswerer, quotation_weights
from rag_resources.answers.citing import passages_of, quoted_ranges
from rag_resources.core.answer_metrics import (
    FIRST_CITATION,
    AnswerSummary,
    Citations,
    EvaluatedAnswer,
    citation_metrics,
    cited_ranges,
    summarize_answers,
)
from rag_resources.core.answers import Answer
from rag_resources.core.calibration import AskedQuestion, calibrate
from rag_resources.core.confidence import Claim
from rag_resources.core.confidence_signals import SIGNALS_VERSION, answer_signals, signals_of
from rag_resources.core.evaluation import QueryOutcome
from rag_resources.core.golden_places import golden_ranges
from rag_resources.core.judging import JudgeSummary
from rag_resources.core.quotation import RankedSentence, quote
from rag_resources.core.silence import ALLOWED_MISSES
from rag_resources.database.pool import Connection


@dataclass(frozen=True, slots=True)
class Answering:
    """How the answers of an evaluation are made and judged.

    Attributes:
        language: Of the questions.
        allowed_misses: Share of answerable questions that may be left unanswered.
    """

    language: str = "es"
    allowed_misses: float = ALLOWED_MISSES


def told_from(language: str) -> str:
    """Return name and version of what the signals of answers in a language are computed from."""
    return f"{QuotationAnswerer(language).name}, {SIGNALS_VERSION}"


def _ranked(outcome: QueryOutcome, language: str) -> list[RankedSentence]:
    """Return the sentences of what a user gets, the most likely to answer first."""
    passages = passages_of(outcome.context, language)
    return QuotationAnswerer(language).ranked(outcome.golden.query, passages)


def _quoted(outcome: QueryOutcome, language: str) -> Answer:
    return quote(_ranked(outcome, language), quotation_weights())


def asked_question(
    outcome: QueryOutcome, language: str, *, citations: Citations | None = None
) -> AskedQuestion:
    """Return the signals of a question's response, and which claims about it were true.

    Args:
        outcome: The retrieval without hidden notes.
        language: The question's language.
        citations: Those of its answer; None answers with sentences of the passages.
    """
    entry, shown = outcome.golden, outcome.context
    relevant = frozenset(entry.relevant_note_ids)
    ranked = _ranked(outcome, language)
    cited = (
        cited_ranges(quote(ranked, quotation_weights()), shown) if citations is None else citations
    )
    targets = golden_ranges(entry.relevant_note_ids, outcome.places)
    true = {
        Claim.RESULTS: outcome.is_served,
        Claim.FIRST: bool(shown) and shown[0].note_id in relevant,
        Claim.ANSWERABLE: bool(relevant),
    }
    if cited:
        is_right = bool(targets) and citation_metrics(cited, (), targets)[FIRST_CITATION] == 1
        true[Claim.CITATION] = is_right
    signals = None
    if shown:
        told = answer_signals(entry.query, shown, ranked, language) or {}
        signals = signals_of(entry.query, shown, final=len(shown), language=language) | told
    return AskedQuestion(_key(outcome), relevant, signals, true)


def hidden_question(outcome: QueryOutcome, language: str) -> AskedQuestion:
    """Return the signals of a question's response while its relevant notes were hidden."""
    ranked = _ranked(outcome, language)
    query, shown = outcome.golden.query, outcome.context
    return AskedQuestion(
        key=uuid5(_key(outcome), "hidden"),
        relevant=frozenset(outcome.golden.relevant_note_ids),
        signals=answer_signals(query, shown, ranked, language),
        true={Claim.ANSWERABLE: False},
        is_hidden=True,
    )


def evaluate_answers(
    connection: Connection,
    outcomes: Sequence[QueryOutcome],
    hidden: Sequence[QueryOutcome],
    answering: Answering,
    judgements: JudgeSummary | None = None,
) -> AnswerSummary:
    """Answer golden questions, and measure citations, silence and confidence.

    A question that lost a stage does not count for silence and confidence.

    Args:
        connection: In a transaction that sees the present notes.
        outcomes: The retrievals of all questions, at least one.
        hidden: Those of the same questions with their relevant notes hidden.
        answering: How answers are made and judged.
        judgements: Answers that were made already; without them sentences of the passages are the
            answers.
    """
    language = answering.language
    answers: dict[str, EvaluatedAnswer] = {}
    cases: list[AskedQuestion] = []
    for outcome in outcomes:
        answers[outcome.key] = own = _evaluated(connection, outcome, language, judgements)
        if not outcome.degraded:
            cases.append(asked_question(outcome, language, citations=own.citations or ()))
    cases += [hidden_question(item, language) for item in hidden if not item.degraded]
    answerer = judgements.info.answerer if judgements else QuotationAnswerer(language).name
    made = calibrate(cases, claims=(Claim.CITATION, Claim.ANSWERABLE)) if cases else None
    return summarize_answers(answerer, answers, made, allowed_misses=answering.allowed_misses)


def _evaluated(
    connection: Connection,
    outcome: QueryOutcome,
    language: str,
    judgements: JudgeSummary | None,
) -> EvaluatedAnswer:
    answer: Answer | None
    if judgements is None or not outcome.context:
        answer = _quoted(outcome, language)
    else:
        judged = judgements.answers.get(outcome.key)
        answer = judged.answer if judged else None
    if answer is None:
        return EvaluatedAnswer(None, {})
    citations = cited_ranges(answer, outcome.context)
    if not citations:
        return EvaluatedAnswer((), {})
    targets = golden_ranges(outcome.golden.relevant_note_ids, outcome.places)
    quoted = quoted_ranges(connection, answer.sentences[:1], outcome.context)
    return EvaluatedAnswer(citations, citation_metrics(citations, quoted, targets))


def _key(outcome: QueryOutcome) -> UUID:
    entry = outcome.golden
    return entry.golden_id or uuid5(NAMESPACE_URL, entry.normalized_query)
