"""The evaluation report as one self-contained HTML file, without network access or scripts.

Its data is in `reporting.data`. Questions and notes are untrusted text: the template escapes
everything except our own drawings, and the page's policy forbids scripts.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rag_resources.core.messages import Message
from rag_resources.evaluation.comparison_tables import rank_in_words
from rag_resources.files import Files
from rag_resources.languages.messages import operators
from rag_resources.reporting.answers import (
    answers_gate,
    citations_table,
    reliabilities,
    silence_curves,
)
from rag_resources.reporting.breakdowns import (
    batches_table,
    groups_tables,
    history_table,
    latency_bars,
    promotions_table,
    stages_table,
)
from rag_resources.reporting.data import (
    SHOWN_NEWCOMERS,
    SHOWN_UNFOUND,
    EvaluationReport,
)
from rag_resources.reporting.plots.answers import reliability_figure, silence_figure
from rag_resources.reporting.plots.canvas import svg
from rag_resources.reporting.plots.evaluations import hit_rates_figure, latency_figure
from rag_resources.reporting.plots.history import Events, history_figure
from rag_resources.reporting.reasons import reasons_of, referred
from rag_resources.reporting.tables import (
    against_in_words,
    answers_table,
    causes_table,
    configurations_table,
    gates_table,
    in_vain_table,
    interval,
    matrix_table,
    moment,
    told_name,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORT = "reports/evaluation.html"
"""Path of the page below `FILES_URL`."""


def render_report(report: EvaluationReport) -> str:
    """Return the report as a self-contained page."""
    environment = Environment(
        loader=PackageLoader("rag_resources.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    reasons = reasons_of(report)
    environment.filters["breakable"] = _breakable
    environment.filters["rank"] = rank_in_words
    environment.filters["referred"] = lambda said: referred(said, reasons)
    # Before the first evaluation there are no numbers to show.
    contents = _contents(report) if report.configurations else {}
    return environment.get_template("report.html").render(
        m=Message,
        language=operators(),
        report=report,
        reasons=reasons,
        read_at=moment(report.read_at),
        facts=list(_facts(report)),
        shown_newcomers=SHOWN_NEWCOMERS,
        shown_unfound=SHOWN_UNFOUND,
        **contents,
    )


def write_report(report: EvaluationReport, files: Files, name: str = REPORT) -> str:
    """Write the page to a file atomically.

    Args:
        report: The data.
        files: Where the file is written.
        name: The file's name.

    Returns:
        Where the file is, in a form for people.

    Raises:
        InvalidParameterError: The file cannot be written.
    """
    files.write(name, render_report(report).encode())
    return files.where(name)


def hit_rates_plot(report: EvaluationReport) -> "Figure":
    """Draw the hit rates of the leading configurations; needs at least one evaluation."""
    return hit_rates_figure(
        {told_name(item): item.gates.hit_rate for item in report.leading},
        threshold=report.gate.hit_rate_at_10,
    )


def history_plot(report: EvaluationReport) -> "Figure":
    """Draw the history of the leading configurations; needs at least one evaluation."""
    first = report.history[0].created_at
    # Earlier events would squeeze the rest of the plot to one side.
    events = Events(
        [item for item in report.promotions if item.promoted_at >= first],
        [item for item in report.batches if item.finished_at >= first],
    )
    undisturbed = [item for item in report.history if not item.is_disturbed]
    return history_figure(
        undisturbed or report.history,
        [item.name for item in report.leading],
        events,
        threshold=report.gate.hit_rate_at_10,
    )


def _contents(report: EvaluationReport) -> dict[str, object]:
    compared = report.matrix.names
    left_out = [item.name for item in report.leading if item.name not in compared]
    return {
        "configurations": configurations_table(report),
        "gates": gates_table(report, answers_gate),
        "groups": groups_tables(report),
        "history": history_table(report),
        "promotions": promotions_table(report),
        "batches": batches_table(report),
        "stages": stages_table(report),
        "answers": answers_table(report),
        "citations": citations_table(report),
        "silence_plot": _silence_svg(report),
        "reliability_plot": _reliability_svg(report),
        "matrix": matrix_table(report),
        "in_vain": {item.name: in_vain_table(item) for item in report.leading},
        "left_out": ", ".join(f"«{name}»" for name in left_out),
        "causes": {item.name: causes_table(item) for item in report.leading},
        "told": {item.name: told_name(item) for item in report.leading},
        "against": {item.name: against_in_words(report, item) for item in report.leading},
        "hit_rates_plot": _hit_rates_svg(report),
        "history_plot": _history_svg(report),
        "latency_plot": _latency_svg(report),
    }


def _facts(report: EvaluationReport) -> Iterator[tuple[str, str]]:
    """Say what serves and which data it was measured on."""
    status, gate = report.status, report.gate
    serving = status.promotion
    if serving and status.serving_since:
        named = Message.REPORT_SERVES.format(
            configuration=serving.configuration, model=serving.model
        )
        since = moment(status.serving_since)
        if serving.reason:
            since = Message.REPORT_ROLLED_BACK.format(moment=since, reason=serving.reason)
        yield Message.REPORT_FACT_CONFIGURATION, named
        yield Message.REPORT_FACT_SINCE, since
    else:
        yield Message.REPORT_FACT_CONFIGURATION, Message.REPORT_SERVES_NOTHING
    questions = Message.REPORT_QUESTIONS.format(count=status.golden, golden=report.golden)
    yield Message.REPORT_FACT_QUESTIONS, questions
    yield (
        Message.REPORT_FACT_INDEX,
        Message.REPORT_INDEX.format(
            version=status.present.index_version,
            notes=status.notes,
            chunked=status.chunked,
            chunks=status.chunks,
        ),
    )
    yield (
        Message.REPORT_FACT_GATE,
        Message.REPORT_GATE.format(
            hit_rate=gate.hit_rate_at_10, latency=gate.latency_p95_ms, points=100 * gate.margin
        ),
    )
    if report.configurations:
        newest = max(item.evaluation.created_at for item in report.configurations)
        yield (
            Message.REPORT_FACT_EVALUATIONS,
            Message.REPORT_EVALUATIONS.format(
                configurations=len(report.configurations), moment=moment(newest)
            ),
        )


def _hit_rates_svg(report: EvaluationReport) -> Markup:
    values = "; ".join(
        f"{told_name(item)} {item.gates.hit_rate.hit_rate:.3f} "
        f"({interval(item.gates.hit_rate.interval.low, item.gates.hit_rate.interval.high)})"
        for item in report.leading
    )
    description = Message.REPORT_HIT_RATES_DESCRIPTION.format(
        threshold=report.gate.hit_rate_at_10, values=values
    )
    return _drawing(hit_rates_plot(report), "hit-rates", Message.PLOT_HIT_RATES, description)


def _history_svg(report: EvaluationReport) -> Markup:
    description = Message.REPORT_HISTORY_DESCRIPTION.format(
        names=_names(report),
        first=moment(report.history[0].created_at),
        last=moment(report.history[-1].created_at),
    )
    return _drawing(history_plot(report), "history", Message.REPORT_HISTORY, description)


def _latency_svg(report: EvaluationReport) -> Markup:
    figure = latency_figure(latency_bars(report), limit_ms=report.gate.latency_p95_ms)
    description = Message.REPORT_LATENCY_DESCRIPTION.format(names=_names(report))
    return _drawing(figure, "latency", Message.REPORT_LATENCY, description)


def _silence_svg(report: EvaluationReport) -> Markup | None:
    curves = silence_curves(report)
    if not curves:
        return None
    allowed = next(
        figures.allowed_misses for item in report.leading if (figures := item.evaluation.answers)
    )
    values = "; ".join(
        f"{name}: {curve.misses(point):.3f} / {curve.false_answers(point):.3f}"
        for name, curve in curves.items()
        if (point := curve.at(allowed))
    )
    description = Message.REPORT_SILENCE_DESCRIPTION.format(allowed=100 * allowed, values=values)
    figure = silence_figure(curves, allowed_misses=allowed)
    return _drawing(figure, "silence", Message.PLOT_SILENCE, description)


def _reliability_svg(report: EvaluationReport) -> Markup | None:
    found = reliabilities(report)
    if not found:
        return None
    values = "; ".join(
        f"{name}: "
        + ", ".join(f"{own.probability:.2f} → {own.right / own.questions:.2f}" for own in bins)
        for name, bins in found.items()
    )
    description = Message.REPORT_RELIABILITY_DESCRIPTION.format(values=values)
    return _drawing(reliability_figure(found), "reliability", Message.PLOT_RELIABILITY, description)


def _breakable(name: str) -> Markup:
    """Let a long name break after an underscore and before an at sign."""
    words = (Markup("<wbr>@").join(word.split("@")) for word in name.split("_"))
    return Markup("_<wbr>").join(words)


def _names(report: EvaluationReport) -> str:
    return ", ".join(item.name for item in report.leading)


def _drawing(figure: "Figure", name: str, title: str, description: str) -> Markup:
    drawn = svg(figure, name=f"plot-{name}", title=title, description=description)
    return Markup(drawn)  # noqa: S704 - the serializer that wrote it escapes its input
