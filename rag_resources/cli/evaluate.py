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
from rag_resources.languages.labels import METRIC_WORDS
from rag_resources.languages.messages import _, joined, ngettext

if TYPE_CHECKING:
    from rag_resources.core.answer_metrics import AnswerFigures
    from rag_resources.core.configuration import NamedConfiguration
    from rag_resources.core.evaluation import QueryOutcome, Summary
    from rag_resources.core.judging import JudgeSummary
    from rag_resources.evaluation.gates import Gates
    from rag_resources.evaluation.runner import Evaluation

HIT_RATES = ("hit_rate_at_1", "hit_rate_at_3", "hit_rate_at_5", "hit_rate_at_10", "served_hit_rate")
METRIC_COLUMNS = (_("Metric"), _("Value"), _("95 % CI"))
SHOWN_QUESTIONS = 10
GROUP_METRICS = ("hit_rate_at_1", "hit_rate_at_5", "hit_rate_at_10", "mrr")


def evaluate(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIGURACIÓN",
            help=_(
                "Named configuration. By default the promoted one; if there is none, "
                "hybrid_windows."
            ),
        ),
    ],
    as_json: JsonOption = False,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="JUEZ",
            help=_(
                "What judges the answers: embedded (rules and vectors) or llm (the language "
                "model). Empty: nothing; by default JUDGE."
            ),
        ),
    ] = None,
    no_store: Annotated[
        bool, typer.Option("--no-store", help=_("Does not store the evaluation."))
    ] = False,
    fail_under_gate: Annotated[
        bool,
        typer.Option(
            "--fail-under-gate",
            help=_("Ends with code 1 if some gate keeps the configuration from serving."),
        ),
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
            note(
                _(
                    "Questions with a relevant note that no longer exists: {count}. That note "
                    "counts as not found here; “rag run” and the UI do not evaluate until they "
                    "are mended. The first: {first}"
                ).format(count=len(broken), first=first)
            )
        steps = app.evaluations.steps(judge)
        with progress(_("Evaluating {name}").format(name=config), total=steps) as advance:
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
    title = _("{name} (questions: {count})").format(
        name=configuration.name, count=summary.total_queries
    )
    screen.print(table(METRIC_COLUMNS, _metric_rows(summary), title=title))
    metrics = [METRIC_WORDS[name] for name in GROUP_METRICS]
    groups = (_("Group"), _("Questions"), *metrics)
    screen.print(table(groups, _group_rows(summary)))
    show_missed(evaluation.outcomes)
    say(
        _("Latency: p50 {p50:.0f} ms, p95 {p95:.0f} ms (limit {limit:.0f} ms).").format(
            p50=summary.latency.p50_ms,
            p95=summary.latency.p95_ms,
            limit=gates.config.latency_p95_ms,
        )
    )
    say(
        ngettext(
            "Measured afterwards, on {queries} question, with the deadline of a user; without a "
            "whole answer in time: {late}.",
            "Measured afterwards, on {queries} questions, with the deadline of a user; without a "
            "whole answer in time: {late}.",
            summary.latency_queries,
        ).format(queries=summary.latency_queries, late=summary.late_queries)
    )
    if summary.judgements:
        say(_judgements_in_words(summary.judgements))
    if summary.answers:
        say(_answers_in_words(summary.answers.figures))
        _show_answer_gates(gates, summary.answers.figures)
    _show_verdict(gates, configuration, summary.total_queries)
    errors = [outcome.error for outcome in evaluation.outcomes if outcome.error]
    if errors:
        note(
            _("Questions that failed and count as not found: {count}. The first: {reason}").format(
                count=len(errors), reason=errors[0]
            )
        )
    if evaluation.evaluation_id:
        say(_("Evaluation stored: {evaluation_id}").format(evaluation_id=evaluation.evaluation_id))
    else:
        say(_("Evaluation not stored (--no-store)."))


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
        verdict: str = GATE_WORDS[state] if is_measured else _("not measured")
        if state is GateState.FAIL and not blocks:
            verdict = _("{verdict}, but only warns").format(verdict=verdict)
        said = joined(": ", (verdict, described))
        say(_("Gate: {description}.").format(description=said))


def _show_verdict(gates: "Gates", configuration: "NamedConfiguration", queries: int) -> None:
    from rag_resources.core.configuration import Role
    from rag_resources.evaluation.summary import gate_in_words

    described = gate_in_words(gates.hit_rate, queries)
    say(_("Gate: {description}.").format(description=described))
    if gates.against:
        say(gates.against.in_words)
    if configuration.role is Role.REFERENCE:
        say(
            _("Only measured to compare with, never promoted: {names}.").format(
                names=configuration.name
            )
        )
    elif gates.obstacle and gates.obstacle is not gates.incomparable:
        note(_("It cannot serve: {reason}.").format(reason=gates.obstacle))


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
    say(_("Without a relevant note among the first ten: {count}.").format(count=len(rows)))
    columns = (_("Question"), _("came first"))
    console().print(table(columns, rows[:SHOWN_QUESTIONS], prose=True))
    if len(rows) > SHOWN_QUESTIONS:
        say(_("{shown} are shown; all with --json.").format(shown=SHOWN_QUESTIONS))


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
    faithfulness, relevance = (_("not judged") if mean is None else f"{mean:.3f}" for mean in means)
    return _(
        "Answers: faithfulness {faithfulness}, relevance {relevance} (judged: {judged}, not "
        "judged because of a failure: {failures}; judge: {judge}; answers of {answerer})."
    ).format(
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
        return _("Answers: none was measured.")
    first = figures.metrics[FIRST_CITATION]
    return _(
        "Answers: {answered} of {questions}; the first citation was right in {first:.3f} "
        "({low:.3f}–{high:.3f}), and {recall:.3f} of the places that answer were cited (answers "
        "of {answerer})."
    ).format(
        answered=figures.answered,
        questions=figures.questions,
        first=first.mean,
        low=first.low,
        high=first.high,
        recall=figures.metrics[CITATION_RECALL].mean,
        answerer=figures.answerer,
    )
