"""`rag evaluate`: runs the golden questions through a configuration."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rag_resources.cli.evaluation_json import evaluation_json, notes_to_name
from rag_resources.cli.output import (
    JsonOption,
    console,
    note,
    progress,
    say,
    table,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.core.messages import METRIC_WORDS, Message
from rag_resources.core.texts import joined

if TYPE_CHECKING:
    from rag_resources.core.answer_metrics import AnswerFigures
    from rag_resources.core.configuration import NamedConfiguration
    from rag_resources.core.evaluation import QueryOutcome, Summary
    from rag_resources.core.judging import JudgeSummary
    from rag_resources.evaluation.gates import Gates
    from rag_resources.evaluation.runner import Evaluation

HIT_RATES = ("hit_rate_at_1", "hit_rate_at_3", "hit_rate_at_5", "hit_rate_at_10", "served_hit_rate")
METRIC_COLUMNS = (Message.COLUMN_METRIC, Message.COLUMN_VALUE, Message.COLUMN_INTERVAL)
SHOWN_QUESTIONS = 10
GROUP_METRICS = ("hit_rate_at_1", "hit_rate_at_5", "hit_rate_at_10", "mrr")


def evaluate(
    config: Annotated[
        str, typer.Argument(metavar="CONFIGURACIÓN", help=Message.HELP_EVALUATE_CONFIG)
    ],
    as_json: JsonOption = False,
    judge: Annotated[
        str | None, typer.Option("--judge", metavar="JUEZ", help=Message.HELP_JUDGE)
    ] = None,
    no_store: Annotated[bool, typer.Option("--no-store", help=Message.HELP_NO_STORE)] = False,
    fail_under_gate: Annotated[
        bool, typer.Option("--fail-under-gate", help=Message.HELP_FAIL_UNDER_GATE)
    ] = False,
) -> None:
    """Evaluate a named configuration."""
    from rag_resources.core.configuration_notices import notices

    with application() as app:
        named = app.configuration(config)
        off = app.settings.warning_about(config, named.retrieval)
        same = app.configurations.notice_of_same(named)
        for notice in filter(None, (*notices(named.retrieval), same, off)):
            note(notice)
        if broken := app.golden.broken():
            first = broken[0].finding
            note(Message.EVALUATE_BROKEN.format(count=len(broken), first=first))
        steps = app.evaluations.steps(judge)
        with progress(Message.EVALUATE_PROGRESS.format(name=config), total=steps) as advance:
            evaluation = app.evaluations.run(
                named, judge=judge, store=not no_store, progress=advance
            )
        gates = app.evaluations.gates_of(named, evaluation)
        names = app.indexing.external_ids(notes_to_name(evaluation)) if as_json else {}
    if as_json:
        write_json(evaluation_json(evaluation, named, gates, names))
    else:
        _show(evaluation, named, gates)
    if fail_under_gate and gates.obstacle:
        raise typer.Exit(1)


def _show(evaluation: "Evaluation", configuration: "NamedConfiguration", gates: "Gates") -> None:
    summary = evaluation.summary
    screen = console()
    title = Message.EVALUATE_TITLE.format(name=configuration.name, count=summary.total_queries)
    screen.print(table(METRIC_COLUMNS, _metric_rows(summary), title=title))
    metrics = [METRIC_WORDS[name] for name in GROUP_METRICS]
    groups = (Message.COLUMN_GROUP, Message.COLUMN_QUERIES, *metrics)
    screen.print(table(groups, _group_rows(summary)))
    show_missed(evaluation.outcomes)
    say(
        Message.EVALUATE_LATENCY.format(
            p50=summary.latency.p50_ms,
            p95=summary.latency.p95_ms,
            limit=gates.config.latency_p95_ms,
        )
    )
    say(
        Message.EVALUATE_LATENCY_SAMPLE.format(
            queries=summary.latency_queries, late=summary.late_queries
        )
    )
    if summary.judgements:
        say(_judgements_in_words(summary.judgements))
    if summary.answers:
        say(_answers_in_words(summary.answers.figures))
        _show_answer_gates(gates, summary.answers.figures)
    _show_verdict(gates, configuration, summary.total_queries)
    errors = [outcome.error for outcome in evaluation.outcomes if outcome.error]
    if errors:
        note(Message.EVALUATE_FAILED.format(count=len(errors), reason=errors[0]))
    if evaluation.evaluation_id:
        say(Message.EVALUATE_STORED.format(evaluation_id=evaluation.evaluation_id))
    else:
        say(Message.EVALUATE_NOT_STORED)


def _show_answer_gates(gates: "Gates", figures: "AnswerFigures") -> None:
    """Say whether the answers reach their thresholds, and whether missing one only warns."""
    from rag_resources.core.gate import GateState
    from rag_resources.evaluation.summary import GATE_WORDS

    config = gates.config
    for state, described, is_measured, blocks in (
        (
            gates.citations,
            gates.citations_in_words,
            figures.citation_precision is not None,
            config.citation_precision_blocks,
        ),
        (
            gates.silence,
            gates.silence_in_words,
            figures.false_answers is not None,
            config.false_answers_blocks,
        ),
    ):
        verdict: str = GATE_WORDS[state] if is_measured else Message.GATE_UNMEASURED
        if state is GateState.FAIL and not blocks:
            verdict = Message.EVALUATE_ONLY_WARNS.format(verdict=verdict)
        said = joined(": ", (verdict, described))
        say(Message.EVALUATE_GATE.format(description=said))


def _show_verdict(gates: "Gates", configuration: "NamedConfiguration", queries: int) -> None:
    from rag_resources.core.configuration import Role
    from rag_resources.evaluation.summary import gate_in_words

    described = gate_in_words(gates.hit_rate, queries)
    say(Message.EVALUATE_GATE.format(description=described))
    if gates.against:
        say(gates.against.in_words)
    if configuration.role is Role.REFERENCE:
        say(Message.RESULTS_REFERENCES.format(names=configuration.name))
    elif gates.obstacle and gates.obstacle is not gates.incomparable:
        note(Message.EVALUATE_OBSTACLE.format(reason=gates.obstacle))


def _metric_rows(summary: "Summary") -> list[tuple[str, ...]]:
    """Format every mean, hit rates with their interval."""
    from rag_resources.core.gate import wilson_interval

    rows: list[tuple[str, ...]] = []
    for name, label in METRIC_WORDS.items():
        if name not in summary.metrics:
            continue
        interval = ""
        if name in HIT_RATES:
            hits = sum(metrics[name] == 1 for metrics in summary.per_query.values())
            wilson = wilson_interval(hits, summary.total_queries)
            interval = f"{wilson.low:.3f}–{wilson.high:.3f}"
        rows.append((label, f"{summary.metrics[name]:.3f}", interval))
    return rows


def show_missed(outcomes: "Sequence[QueryOutcome]") -> None:
    """Name the first questions that were missed, and what came first."""
    from rag_resources.evaluation.summary import missed_rows

    rows = missed_rows(outcomes)
    if not rows:
        return
    say(Message.EVALUATE_MISSED.format(count=len(rows)))
    columns = (Message.COLUMN_QUESTION, Message.COLUMN_CAME_FIRST)
    console().print(table(columns, rows[:SHOWN_QUESTIONS], prose=True))
    if len(rows) > SHOWN_QUESTIONS:
        say(Message.EVALUATE_MISSED_SHOWN.format(shown=SHOWN_QUESTIONS))


def _group_rows(summary: "Summary") -> list[list[str]]:
    from rag_resources.evaluation.summary import group_in_words

    return [
        [
            group_in_words(group),
            f"{values['queries']:.0f}",
            *(f"{values[metric]:.3f}" for metric in GROUP_METRICS),
        ]
        for group, values in summary.breakdown.items()
    ]


def _judgements_in_words(judgements: "JudgeSummary") -> str:
    means = (judgements.faithfulness, judgements.answer_relevance)
    faithfulness, relevance = (
        Message.NOT_JUDGED if mean is None else f"{mean:.3f}" for mean in means
    )
    return Message.EVALUATE_JUDGED.format(
        faithfulness=faithfulness,
        relevance=relevance,
        judged=judgements.judged,
        failures=judgements.failures,
        judge=f"{judgements.info.name}, {judgements.info.version}",
        answerer=judgements.info.answerer,
    )


def _answers_in_words(figures: "AnswerFigures") -> str:
    from rag_resources.core.answer_metrics import CITATION_RECALL, FIRST_CITATION

    if not figures.metrics:
        return Message.EVALUATE_NO_ANSWERS
    first = figures.metrics[FIRST_CITATION]
    return Message.EVALUATE_ANSWERS.format(
        answered=figures.answered,
        questions=figures.questions,
        first=first.mean,
        low=first.low,
        high=first.high,
        recall=figures.metrics[CITATION_RECALL].mean,
        answerer=figures.answerer,
    )
