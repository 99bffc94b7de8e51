"""`rag evaluate`: asks the golden questions; `rag report`: all evaluations on one page."""

import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from rag_resources.cli.output import (
    JsonOption,
    conclude,
    note,
    picked,
    print_table,
    progress,
    say,
    working,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.languages.labels import METRIC_WORDS
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.core.answer_metrics import AnswerFigures
    from rag_resources.core.configuration import NamedConfiguration
    from rag_resources.core.evaluation import QueryOutcome, Summary
    from rag_resources.core.judging import JudgeSummary
    from rag_resources.evaluation.gates import Gates
    from rag_resources.evaluation.runner import Evaluation

HIT_RATES = ("hit_rate_at_1", "hit_rate_at_3", "hit_rate_at_5", "hit_rate_at_10", "served_hit_rate")
SHOWN_QUESTIONS = 10


def evaluate(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIGURACIÓN", help=_("Named configuration; by default the promoted one.")
        ),
    ],
    no_store: Annotated[
        bool, typer.Option("--no-store", help=_("Does not store the evaluation."))
    ] = False,
    table: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            "--parquet",
            metavar="FICHERO",
            help=_("Also writes a row per question; a name in .parquet gives Parquet, else CSV."),
        ),
    ] = None,
    as_json: JsonOption = False,
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
            note(
                _(
                    "Questions with a relevant note that no longer exists: {count}. The first: "
                    "{first}"
                ).format(count=len(broken), first=broken[0].finding)
            )
        with progress(
            _("Evaluating: {names}…").format(names=config), total=app.evaluations.steps()
        ) as advance:
            evaluation = app.evaluations.run(named, store=not no_store, progress=advance)
        gates = app.evaluations.gates_of(named, evaluation)
        missed = [each for each in evaluation.outcomes if not each.is_hit]
        shown = (id_ for each in missed for id_ in _notes_of(each)) if as_json else ()
        names = app.indexing.external_ids(set(shown))
        if table:
            app.evaluations.write_questions(evaluation, table)
    if as_json:
        write_json(_as_json(evaluation, named, gates, names))
    else:
        _show(evaluation, named, gates)
        if table:
            say(
                _("Questions written to {path}: {count}.").format(
                    path=table, count=len(evaluation.outcomes)
                )
            )


def report(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FICHERO.html",
            help=_("File to write. By default reports/evaluation.html in RAG_HOME."),
        ),
    ] = None,
    open_it: Annotated[
        bool, typer.Option("--open", help=_("Also opens the report in the browser."))
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the report of the stored evaluations, and say where it is."""
    with application() as opened, working(_("Preparing the report…")):
        where = opened.evaluations.write_report(opened.evaluations.report(), output)
    conclude(_("Written: {path}.").format(path=where), {"report": where}, as_json=as_json)
    if open_it:
        webbrowser.open(where if "://" in where else Path(where).as_uri())


def _show(evaluation: "Evaluation", configuration: "NamedConfiguration", gates: "Gates") -> None:
    from rag_resources.core.configuration import Role

    summary = evaluation.summary
    say(_("Gate: {description}.").format(description=gates.description))
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
    title = _("{name} (questions: {count})").format(
        name=configuration.name, count=summary.total_queries
    )
    print_table((_("Metric"), _("Value"), _("95 % CI")), _metric_rows(summary), title=title)
    show_missed(evaluation.outcomes)
    say(
        _("Latency: p50 {p50:.0f} ms, p95 {p95:.0f} ms (limit {limit:.0f} ms).").format(
            p50=summary.latency.p50_ms,
            p95=summary.latency.p95_ms,
            limit=gates.config.latency_p95_ms,
        )
    )
    if summary.judgements:
        say(_judgements_in_words(summary.judgements))
    if summary.answers:
        say(_answers_in_words(summary.answers.figures))
    errors = [outcome.error for outcome in evaluation.outcomes if outcome.error]
    if errors:
        note(
            _("Questions that failed and count as not found: {count}. The first: {reason}").format(
                count=len(errors), reason=errors[0]
            )
        )
    if evaluation.evaluation_id:
        say(_("Evaluation stored: {evaluation_id}").format(evaluation_id=evaluation.evaluation_id))


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
    if rows:
        title = _("Without a relevant note among the first ten: {count}.").format(count=len(rows))
        columns = (_("Question"), _("came first"))
        print_table(columns, rows[:SHOWN_QUESTIONS], title=title, prose=True)


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
    from rag_resources.core.answer_metrics import CITATION_RECALL, FIRST_CITATION, FIRST_QUOTATION

    if not figures.metrics:
        return _("Answers: none was measured.")
    first = figures.metrics[FIRST_CITATION]
    return _(
        "Answers: {answered} of {questions}; the first citation was right in {first:.3f} "
        "({low:.3f}–{high:.3f}), with the quoted block in {quoted:.3f}, and {recall:.3f} of the "
        "places that answer were cited (answers of {answerer})."
    ).format(
        answered=figures.answered,
        questions=figures.questions,
        first=first.mean,
        low=first.low,
        high=first.high,
        quoted=figures.metrics[FIRST_QUOTATION].mean,
        recall=figures.metrics[CITATION_RECALL].mean,
        answerer=figures.answerer,
    )


def _as_json(
    evaluation: "Evaluation",
    named: "NamedConfiguration",
    gates: "Gates",
    names: Mapping[UUID, str],
) -> dict[str, Any]:
    summary, verdict = evaluation.summary, gates.hit_rate
    return {
        "evaluationId": evaluation.evaluation_id,
        "configuration": named.name,
        **picked(named.retrieval, "config_hash", "model"),
        **picked(
            summary,
            *("total_queries", "failed_queries", "degraded_queries", "latency_queries"),
            *("late_queries", "metrics", "breakdown", "latency", "stages"),
        ),
        "gate": {
            **picked(verdict, "state", "threshold", "queries_to_settle", hit_rate_at_10="hit_rate"),
            "interval": [verdict.interval.low, verdict.interval.high],
            **picked(gates, "latency", "citations", "silence", "regression", "obstacle"),
        },
        "judgements": summary.judgements and _judgements_as_json(summary.judgements),
        "answers": summary.answers and _answers_as_json(summary.answers.figures),
        "missed": [
            _question_as_json(each, names)
            for each in evaluation.outcomes
            if not each.is_hit and not each.error
        ],
        "failures": [
            {"query": each.golden.query, "error": each.error}
            for each in evaluation.outcomes
            if each.error
        ],
    }


def _notes_of(outcome: "QueryOutcome") -> Sequence[UUID]:
    return (*outcome.golden.relevant_note_ids, *outcome.retrieved_note_ids)


def _question_as_json(outcome: "QueryOutcome", names: Mapping[UUID, str]) -> dict[str, Any]:
    relevant = outcome.golden.relevant_note_ids
    retrieved = [UUID(note_id) for note_id in outcome.judged.distinct]
    return {
        "goldenId": outcome.key,
        "query": outcome.golden.query,
        "relevantNoteIds": relevant,
        "relevantNotes": [names.get(note_id, str(note_id)) for note_id in relevant],
        "retrievedNoteIds": retrieved,
        "retrievedNotes": [names.get(note_id, str(note_id)) for note_id in retrieved],
    }


def _judgements_as_json(judgements: "JudgeSummary") -> dict[str, Any]:
    return picked(
        judgements,
        *("faithfulness", "answer_relevance"),
        judged_queries="judged",
        judge_failures="failures",
    ) | picked(
        judgements.info, "answerer", judge="name", judge_model="model", judge_version="version"
    )


def _answers_as_json(figures: "AnswerFigures") -> dict[str, Any]:
    claims = {"citation": figures.citation, "answerable": figures.answerable}
    curve = figures.silence
    return picked(figures, "answerer", "questions", "answered", "failed") | {
        "metrics": {
            name: {"mean": own.mean, "interval": [own.low, own.high]}
            for name, own in figures.metrics.items()
        },
        "silence": curve.to_json(curve.points[0]) if curve else None,
        "claims": {
            name: picked(own, "auc", "brier", "constant_brier")
            | {"aucInterval": [own.auc_low, own.auc_high]}
            | {"bands": [band.to_json() for band in own.bands]}
            for name, own in claims.items()
            if own
        },
    }
