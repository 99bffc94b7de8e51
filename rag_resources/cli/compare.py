"""`rag compare`: compares two evaluations, question by question."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, console, note, say, table, write_json
from rag_resources.cli.session import application
from rag_resources.core.messages import Message
from rag_resources.core.texts import joined

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from rich.console import RenderableType

    from rag_resources.core.attribution import EvaluatedQuestion, Flip, Shift
    from rag_resources.core.comparison import Comparison, NonInferiority
    from rag_resources.core.counterfactuals import Attribution
    from rag_resources.core.evaluation import StoredEvaluation
    from rag_resources.core.evidence import Evidence
    from rag_resources.core.tables import ReportTable
    from rag_resources.evaluation.attribution import AnswerAttribution
    from rag_resources.evaluation.comparison import EvaluationComparison

SHOWN_FLIPS, SHOWN_SHIFTS = 20, 10
SHOWN_NEWCOMERS = 3


def compare(
    before: Annotated[str, typer.Argument(metavar="ANTES", help=Message.HELP_COMPARE_BEFORE)],
    after: Annotated[str, typer.Argument(metavar="DESPUÉS", help=Message.HELP_COMPARE_AFTER)],
    common: Annotated[bool, typer.Option("--common", help=Message.HELP_COMPARE_COMMON)] = False,
    why: Annotated[bool, typer.Option("--why", help=Message.HELP_COMPARE_CAUSES)] = False,
    question: Annotated[
        str, typer.Option("--question", metavar="TEXTO", help=Message.HELP_COMPARE_QUESTION)
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Compare the second evaluation with the first."""
    with application() as opened:
        found, judged = opened.evaluations.compare(before, after, common_only=common)
        evidence = opened.evaluations.evidence([found.before, found.after])
        causes = opened.evaluations.attribute(found.before, found.after, say=note) if why else None
        answers = (
            opened.evaluations.attribute_answers(
                found.before, found.after, question=question, say=note
            )
            if why
            else None
        )
    if as_json:
        told = {
            "causes": _causes(causes) if causes else None,
            "answerCauses": _answer_causes(answers) if answers else None,
        }
        write_json(_as_json(found, judged, evidence) | told)
        return
    _show(found, judged, evidence)
    if causes:
        _show_causes(causes)
    if answers:
        _show_answers(answers)


def _show(
    found: "EvaluationComparison",
    judged: "Mapping[str, NonInferiority]",
    evidence: "Mapping[UUID, Evidence]",
) -> None:
    from rag_resources.evaluation.comparison_tables import (
        changes_table,
        metrics_table,
    )
    from rag_resources.evaluation.summary import evidence_in_words, inferiority_in_words

    comparison, screen = found.comparison, console()
    title = Message.COMPARE_TITLE.format(
        before=_titled(found.before),
        after=_titled(found.after),
        queries=comparison.queries,
    )
    screen.print(_table(metrics_table(comparison, title=title)))
    if found.passages:
        title = Message.COMPARE_PASSAGES_TITLE.format(queries=found.passages.queries)
        screen.print(_table(metrics_table(found.passages, title=title)))
    if found.answers:
        title = Message.COMPARE_ANSWERS_TITLE.format(queries=found.answers.queries)
        screen.print(_table(metrics_table(found.answers, title=title)))
    for item in (found.before, found.after):
        state = evidence[item.evaluation_id]
        if not state.is_current:
            said = evidence_in_words(state)
            note(Message.COMPARE_EVIDENCE.format(evaluation=_titled(item), evidence=said))
    say(Message.COMPARE_METHOD)
    verdict = joined(" ", (inferiority_in_words(item, metric) for metric, item in judged.items()))
    say(Message.COMPARE_FOR_GATE.format(verdict=verdict))
    if comparison.left_out:
        note(Message.COMPARE_LEFT_OUT.format(count=comparison.left_out))
    changes = changes_table(found)
    if changes.rows:
        screen.print(_table(changes))
    else:
        say(Message.COMPARE_NO_CHANGES)
    _show_questions(found)


def _show_questions(found: "EvaluationComparison") -> None:
    """Name the questions lost, gained, and found at another rank."""
    from rag_resources.evaluation.comparison_tables import (
        flips_table,
        shifts_in_words,
        shifts_table,
    )

    comparison, screen = found.comparison, console()
    flips = flips_table(found, shown=SHOWN_FLIPS)
    lost, gained = len(comparison.lost), len(comparison.gained)
    say(Message.COMPARE_FLIPS.format(lost=lost, gained=gained))
    if served := comparison.served:
        say(Message.COMPARE_FLIPS_SERVED.format(lost=served.lost, gained=served.gained))
    if flips.rows:
        screen.print(_table(flips))
    if len(flips.rows) < len(found.flips):
        say(Message.COMPARE_FLIPS_SHOWN.format(shown=len(flips.rows)))
    if found.shifts:
        say(shifts_in_words(found))
        screen.print(_table(shifts_table(found, shown=SHOWN_SHIFTS)))
        if len(found.shifts) > SHOWN_SHIFTS:
            say(Message.COMPARE_FLIPS_SHOWN.format(shown=SHOWN_SHIFTS))


def _show_causes(causes: "Attribution") -> None:
    from rag_resources.evaluation.comparison_tables import attribution_table

    if causes.lost:
        console().print(_table(attribution_table(causes)))
    else:
        say(Message.ATTRIBUTION_NOTHING)


def _show_answers(answers: "AnswerAttribution") -> None:
    from rag_resources.evaluation.comparison_tables import answers_table

    if answers.changed:
        console().print(_table(answers_table(answers, shown=SHOWN_FLIPS)))
    else:
        say(Message.ANSWERS_UNCHANGED)


def _answer_causes(answers: "AnswerAttribution") -> dict[str, Any]:
    from rag_resources.core.attribution import first_citation
    from rag_resources.evaluation.comparison_tables import causes_in_words

    def cited(question: "EvaluatedQuestion") -> list[dict[str, Any]]:
        return [
            {"noteId": str(own.note_id), "start": own.start, "end": own.end}
            for own in first_citation(question.citations)
        ]

    return {
        **_causes(answers.causes),
        "changed": [
            {
                "goldenId": str(item.after.golden_id),
                "query": item.after.query,
                "before": cited(item.before),
                "after": cited(item.after),
                "causes": causes_in_words(answers.causes, item.after.golden_id),
            }
            for item in answers.changed
        ],
    }


def _causes(causes: "Attribution") -> dict[str, Any]:
    return {
        "lost": causes.lost,
        "examined": len(causes.examined),
        "unstable": sorted(map(str, causes.unstable)),
        "causes": [
            {
                "change": item.change.value,
                "together": [change.value for change in item.together],
                "month": item.month or None,
                "fields": item.fields or None,
                "share": causes.share(item.queries),
                "queries": sorted(map(str, item.queries)),
            }
            for item in causes.causes
        ],
        "suspicions": [
            {
                "suspicion": item.suspicion.value,
                "month": item.month or None,
                "queries": sorted(map(str, item.queries)),
            }
            for item in causes.suspected
        ],
    }


def _table(item: "ReportTable") -> "RenderableType":
    return table(item.columns, item.rows, title=item.title, prose=item.is_prose)


def _titled(evaluation: "StoredEvaluation") -> str:
    """Name an evaluation with its time, which distinguishes two of one configuration."""
    return Message.COMPARE_EVALUATION.format(
        configuration=evaluation.configuration, created_at=evaluation.created_at
    )


def _as_json(
    found: "EvaluationComparison",
    judged: "Mapping[str, NonInferiority]",
    evidence: "Mapping[UUID, Evidence]",
) -> dict[str, Any]:
    from rag_resources.core.comparison import HITS
    from rag_resources.core.metrics import SERVED

    comparison = found.comparison
    return {
        "before": _evaluation(found.before, evidence),
        "after": _evaluation(found.after, evidence),
        "queries": comparison.queries,
        "leftOut": comparison.left_out,
        "metrics": _metrics_json(comparison),
        "passages": {
            "queries": found.passages.queries,
            "metrics": _metrics_json(found.passages),
        }
        if found.passages
        else None,
        "answers": {
            "queries": found.answers.queries,
            "metrics": _metrics_json(found.answers),
        }
        if found.answers
        else None,
        "nonInferiority": _inferiority(judged[HITS]),
        "servedNonInferiority": _inferiority(judged[SERVED]) if SERVED in judged else None,
        "changes": [
            {"field": item.field, "before": item.before, "after": item.after}
            for item in found.changes
        ],
        "flips": [_moved(found, flip) for flip in found.flips],
        "shifts": [_moved(found, shift) for shift in found.shifts],
    }


def _inferiority(judged: "NonInferiority") -> dict[str, Any]:
    return {
        "state": judged.state.value,
        "interval": list(judged.interval),
        "margin": judged.margin,
    }


def _metrics_json(comparison: "Comparison") -> list[dict[str, Any]]:
    return [
        {
            "metric": item.metric,
            "before": item.before,
            "after": item.after,
            "difference": item.difference,
            "interval": list(item.interval),
            "pValue": item.p_value,
            "adjustedPValue": item.adjusted_p_value,
            "verdict": item.verdict.value,
        }
        for item in comparison.metrics
    ]


def _evaluation(
    evaluation: "StoredEvaluation", evidence: "Mapping[UUID, Evidence]"
) -> dict[str, Any]:
    return {
        "evaluationId": str(evaluation.evaluation_id),
        "configuration": evaluation.configuration,
        "createdAt": evaluation.created_at.isoformat(),
        "evidence": evidence[evaluation.evaluation_id].state.value,
    }


def _moved(found: "EvaluationComparison", item: "Flip | Shift") -> dict[str, Any]:
    """Return the ranks of a question in both, and what came above its note."""
    from rag_resources.evaluation.comparison_tables import note_names

    return {
        "goldenId": str(item.after.golden_id),
        "query": item.after.query,
        "category": item.after.category,
        "rankBefore": item.before.rank,
        "rankAfter": item.after.rank,
        "servedBefore": item.before.is_served,
        "servedAfter": item.after.is_served,
        "relevantNotes": note_names(found, item.after.relevant),
        "newcomers": note_names(found, item.newcomers),
    }
