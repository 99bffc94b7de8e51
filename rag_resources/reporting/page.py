"""The evaluation report as one self-contained HTML file, without network access or scripts.

Its data is in `reporting.report`, its only plot in `reporting.plot`. Questions and notes are
untrusted text: the template escapes everything except our own drawing, and the page's policy
forbids scripts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rag_resources.core.configuration import Role, usable_retrieval
from rag_resources.core.gate import GateState, wilson_interval
from rag_resources.core.metrics import SERVED
from rag_resources.evaluation.comparison_tables import changes_table, flips_table
from rag_resources.evaluation.summary import verdict_in_words
from rag_resources.files import Files
from rag_resources.languages.labels import METRIC_WORDS
from rag_resources.languages.messages import _, ngettext, operators
from rag_resources.reporting.plot import history_svg
from rag_resources.reporting.report import EvaluationReport, ReportedConfiguration

REPORT = "reports/evaluation.html"
"""Path of the page below `FILES_URL`."""

SHOWN_FLIPS = 15
SHOWN_MISSED = 30
SHOWN_HISTORY = 100

_GATE_MARKS = {
    GateState.PASS: ("✓", "good"),
    GateState.INCONCLUSIVE: ("≈", "open"),
    GateState.FAIL: ("✗", "bad"),
    GateState.DISTURBED: ("?", "bad"),
}
_STALE_MARK = ("·", "open")


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell: a text, further texts in small print, and a tone.

    Attributes:
        tone: `good`, `open`, `bad` or empty; the text alone says the same.
    """

    text: str
    details: tuple[str, ...] = ()
    tone: str = ""


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table whose first column names the rows; `is_prose` if its cells are text, not numbers."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    is_prose: bool = False


@dataclass(frozen=True, slots=True)
class Against:
    """How a configuration compares with what serves: in words, and what changed and flipped."""

    name: str
    said: str
    tables: Sequence[PageTable] = ()


def render_report(report: EvaluationReport) -> str:
    """Return the report as a self-contained page."""
    environment = Environment(
        loader=PackageLoader("rag_resources.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    return environment.get_template("report.html").render(
        _=_,
        language=operators(),
        report=report,
        read_at=_moment(report.read_at),
        facts=list(_facts(report)),
        configurations=_configurations(report),
        against=[_against(item) for item in report.leading],
        plot=history_svg(report) if report.history else "",
        history=_history(report),
        missed=_missed(report),
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


def _facts(report: EvaluationReport) -> Iterator[tuple[str, str]]:
    """Say what serves and which data it was measured on."""
    status, gate = report.status, report.gate
    serving = status.promotion
    if serving and status.serving_since:
        named = _("{configuration}, with the model {model}").format(
            configuration=serving.configuration, model=serving.model
        )
        since = _moment(status.serving_since)
        if serving.reason:
            since = _("{moment}, by undoing what was before: {reason}").format(
                moment=since, reason=serving.reason
            )
        yield _("Configuration"), named
        yield _("Since"), since
    else:
        yield _("Configuration"), _("No promoted configuration serves yet.")
    golden = status.present.golden_hash
    questions = _("{count} in the set {golden}").format(count=status.golden, golden=golden)
    yield _("Questions"), questions
    yield (
        _("Index"),
        _("version {version}; notes: {notes} (chunked: {chunked}); chunks: {chunks}").format(
            version=status.present.index_version,
            notes=status.notes,
            chunked=status.chunked,
            chunks=status.chunks,
        ),
    )
    yield (
        _("Gate"),
        _(
            "Hit_Rate@10 ≥ {hit_rate:g}; p95 < {latency:g} ms; against what serves, not worse by "
            "more than {points:g} points"
        ).format(
            hit_rate=gate.hit_rate_at_10, latency=gate.latency_p95_ms, points=100 * gate.margin
        ),
    )


def _configurations(report: EvaluationReport) -> PageTable:
    """Return every configuration with its hit rates, its gate, and whether it may serve."""
    columns = (
        _("Configuration"),
        _("Gate"),
        *("Hit_Rate@1", "Hit_Rate@3", "Hit_Rate@5", "Hit_Rate@10"),
        *(METRIC_WORDS[SERVED], "MRR", "nDCG@10", "p50/p95 ms"),
        _("May it serve?"),
    )
    rows = []
    for item in report.configurations:
        own = item.evaluation
        rates = (own.hit_rate_at_1, own.hit_rate_at_3, own.hit_rate_at_5, own.hit_rate_at_10)
        rows.append(
            (
                Cell(item.name, tuple(_circumstances(report, item))),
                _verdict(report, item),
                *(_hit_rate(rate, own.total_queries) for rate in (*rates, own.served_hit_rate)),
                Cell(f"{own.mrr:.3f}"),
                Cell(f"{own.ndcg_at_10:.3f}"),
                Cell(f"{own.latency_p50_ms:.0f}/{own.latency_p95_ms:.0f}"),
                _may_serve(report, item),
            )
        )
    return PageTable(
        _(
            "The last evaluation of each configuration, the best first; below each Hit_Rate its "
            "95 % Wilson interval."
        ),
        columns,
        rows,
    )


def _circumstances(report: EvaluationReport, item: ReportedConfiguration) -> Iterator[str]:
    """Say what a reader must know to interpret the numbers."""
    own = item.evaluation
    if item.is_of(report.status.promotion):
        yield _("★ serves")
    config = usable_retrieval(own.config, origin=own.configuration)
    searches_words = config is not None and not config.uses_vectors
    yield ngettext(
        "{moment} · {model} · {queries} question",
        "{moment} · {model} · {queries} questions",
        own.total_queries,
    ).format(
        moment=_moment(own.created_at),
        model=_("no model") if searches_words else own.model,
        queries=own.total_queries,
    )
    if own.golden_hash != report.status.present.golden_hash:
        yield _("with another set of questions ({golden})").format(golden=own.golden_hash)
    if own.failed_queries:
        yield _("questions that failed, and count as not found: {count}").format(
            count=own.failed_queries
        )
    if item.gates.disturbance:
        yield item.gates.disturbance


def _verdict(report: EvaluationReport, item: ReportedConfiguration) -> Cell:
    """Say whether it passes the gate, and why its figures are not current."""
    gates = item.gates
    mark, tone = _STALE_MARK if gates.staleness else _GATE_MARKS[gates.hit_rate.state]
    said = verdict_in_words(item.evaluation, report.gate, gates.evidence)
    reasons = () if gates.evidence.is_current else (gates.evidence.explanation,)
    return Cell(f"{mark} {said}", reasons, tone)


def _hit_rate(rate: float, queries: int) -> Cell:
    wilson = wilson_interval(round(rate * queries), queries)
    return Cell(f"{rate:.3f}", (f"{wilson.low:.3f}–{wilson.high:.3f}",))


def _may_serve(report: EvaluationReport, item: ReportedConfiguration) -> Cell:
    serving = report.status.promotion
    if serving and serving.evaluation_id == item.evaluation.evaluation_id:
        return Cell(_("★ serves"), tone="good")
    if item.named and item.named.role is Role.REFERENCE:
        return Cell(_("no: it is a reference, for comparison only"))
    if item.refusal:
        return Cell(_("no: {reason}").format(reason=item.refusal), tone="bad")
    return Cell(_("yes"), tone="good")


def _against(item: ReportedConfiguration) -> Against:
    gates = item.gates
    if gates.against is None:
        return Against(
            item.name, gates.disturbance or _("There is no other evaluation to compare with.")
        )
    found = gates.against.found
    said = [gates.against.in_words]
    if found.left_out:
        said.append(
            _(
                "Questions that are not in both evaluations, or have other relevant notes, do not "
                "count: {count}."
            ).format(count=found.left_out)
        )
    if gates.staleness or gates.against.outdated:
        said.append(
            _(
                "One of the two evaluations is stale: what changed may come from the notes or the "
                "questions, not from the configuration."
            )
        )
    tables = (changes_table(found), flips_table(found, shown=SHOWN_FLIPS))
    return Against(
        item.name,
        " ".join(said),
        [
            PageTable("", table.columns, [[*map(Cell, row)] for row in table.rows], is_prose=True)
            for table in tables
            if table.rows
        ],
    )


def _history(report: EvaluationReport) -> PageTable:
    """Return the newest evaluations of the leading configurations, newest first."""
    newest = report.history[::-1][:SHOWN_HISTORY]
    return PageTable(
        _("The {shown} latest evaluations of {total}.").format(
            shown=len(newest), total=len(report.history)
        ),
        (
            _("Evaluated"),
            _("Configuration"),
            "Hit_Rate@10",
            "MRR",
            _("Questions"),
            _("Set"),
        ),
        [
            (
                Cell(_moment(item.created_at)),
                Cell(item.configuration, (_("disturbed"),) if item.is_disturbed else ()),
                _hit_rate(item.hit_rate_at_10, item.total_queries),
                Cell(f"{item.mrr:.3f}"),
                Cell(str(item.total_queries)),
                Cell(item.golden_hash),
            )
            for item in newest
        ],
    )


def _missed(report: EvaluationReport) -> PageTable:
    """Return the first questions that were missed, with their relevant notes."""
    return PageTable(
        _("Questions that “{name}” does not find among the first ten: {count}").format(
            name=report.missed_by, count=len(report.missed)
        ),
        (_("Question"), _("Category"), _("Relevant notes")),
        [
            (
                Cell(each.query),
                Cell(each.category),
                Cell(", ".join(report.notes.get(key, str(key)) for key in each.relevant)),
            )
            for each in report.missed[:SHOWN_MISSED]
        ],
        is_prose=True,
    )


def _moment(value: datetime) -> str:
    """Format a time in UTC."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"


def _breakable(name: str) -> Markup:
    """Let a long name break after an underscore and before an at sign."""
    words = (Markup("<wbr>@").join(word.split("@")) for word in name.split("_"))
    return Markup("_<wbr>").join(words)
