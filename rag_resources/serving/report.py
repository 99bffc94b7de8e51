"""The evaluation report: its data, read in one database snapshot, and the page made of it.

Questions and notes are untrusted text: the template escapes everything, and the page's policy
forbids scripts and addresses.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from jinja2 import Environment, PackageLoader, StrictUndefined

from rag_resources.core.attribution import EvaluatedQuestion
from rag_resources.core.configuration import NamedConfiguration, Role
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import SearchSettings
from rag_resources.core.gate import GateConfig
from rag_resources.core.tables import ReportTable
from rag_resources.database.pool import Database
from rag_resources.evaluation.comparison_tables import changes_table, flips_table
from rag_resources.evaluation.evidence import EvidenceReader
from rag_resources.evaluation.gates import Gates, read_gates
from rag_resources.evaluation.summary import comparison_table
from rag_resources.files import Files
from rag_resources.languages.messages import _, operators
from rag_resources.serving.promotion import refusal
from rag_resources.store.comparison import evaluated_questions, name_notes
from rag_resources.store.contents import count_contents
from rag_resources.store.evaluations import history_of
from rag_resources.store.status import DatabaseStatus, read_status

REPORT = "reports/evaluation.html"
"""Path of the page below `FILES_URL`."""

SHOWN_QUESTIONS = 30
SHOWN_HISTORY = 100


@dataclass(frozen=True, slots=True)
class ReportedConfiguration:
    """A configuration with its newest evaluation.

    Attributes:
        gates: The verdicts of the present gates.
        serves: Whether it is the one that serves.
        refusal: Why it may not serve on this evaluation, in Spanish; None if it may.
    """

    gates: Gates
    serves: bool
    refusal: str | None

    @property
    def evaluation(self) -> StoredEvaluation:
        """Its newest evaluation."""
        return self.gates.evaluation


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """The data of the report.

    Attributes:
        configurations: Every evaluated configuration, best first.
        history: The newest evaluations, newest first.
        missed: The questions that the one that serves, or else the best, does not find.
        missed_by: That one's name; empty without evaluations.
        notes: The relevant notes of those questions, if they still exist.
    """

    read_at: datetime
    status: DatabaseStatus
    gate: GateConfig
    configurations: tuple[ReportedConfiguration, ...]
    history: tuple[StoredEvaluation, ...]
    missed: tuple[EvaluatedQuestion, ...]
    missed_by: str
    notes: Mapping[UUID, str]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: paragraphs, then tables."""

    title: str
    texts: Sequence[str]
    tables: Sequence[ReportTable] = ()


def read_report(
    database: Database,
    configurations: Mapping[str, NamedConfiguration],
    *,
    gate: GateConfig | None = None,
    settings: SearchSettings | None = None,
) -> EvaluationReport:
    """Read everything in one snapshot.

    Args:
        database: Open.
        configurations: All present configurations, by name.
        gate: What a configuration must reach; None uses the defaults.
        settings: The settings that searches use; None is the defaults.
    """
    gate, settings = gate or GateConfig(), settings or SearchSettings()
    with database.transaction() as connection:
        count_contents(connection)
    with database.snapshot() as connection:
        status = read_status(connection)
        evidence = EvidenceReader(connection, settings)

        def judged(item: StoredEvaluation) -> ReportedConfiguration:
            named = configurations.get(item.configuration)
            own = evidence.judge(item, named.retrieval if named else None)
            gates = read_gates(connection, item, gate, own, settings)
            if named is None:
                refused: str | None = _("there is no configuration of that name any more")
            elif named.role is Role.REFERENCE:
                refused = _("it is a reference, for comparison only")
            else:
                refused = refusal(connection, named, gates, by_itself=True)
            serving = status.promotion
            serves = serving is not None and serving.configuration == item.configuration
            return ReportedConfiguration(gates, serves, refused)

        ordered = sorted(status.evaluations, key=lambda item: (-item.hit_rate_at_10, -item.mrr))
        reported = [judged(item) for item in ordered]
        main = next((item for item in reported if item.serves), next(iter(reported), None))
        asked = []
        if main:
            key = main.evaluation.evaluation_id
            asked = [*evaluated_questions(connection, [key])[key].values()]
        missed = sorted((each for each in asked if not each.is_found), key=lambda each: each.query)
        names = [item.configuration for item in ordered]
        return EvaluationReport(
            read_at=datetime.now(UTC),
            status=status,
            gate=gate,
            configurations=tuple(reported),
            history=tuple(history_of(connection, names, limit=SHOWN_HISTORY)[::-1]),
            missed=tuple(missed),
            missed_by=main.evaluation.configuration if main else "",
            notes=name_notes(
                connection, sorted({note for each in missed for note in each.relevant})
            ),
        )


def write_report(report: EvaluationReport, files: Files, name: str = REPORT) -> str:
    """Write the page to a file atomically, and return where it is, in a form for people.

    Raises:
        InvalidParameterError: The file cannot be written.
    """
    files.write(name, render_report(report).encode())
    return files.where(name)


def render_report(report: EvaluationReport) -> str:
    """Return the report as a page that needs nothing else."""
    environment = Environment(
        loader=PackageLoader("rag_resources.serving"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(
        _=_,
        language=operators(),
        moment=_moment(report.read_at),
        sections=list(_sections(report)),
    )


def _sections(report: EvaluationReport) -> Iterator[Section]:
    yield Section(_("What serves"), list(_facts(report)))
    if not report.configurations:
        return
    yield Section(_("Configurations"), (), (_configurations(report),))
    for item in report.configurations:
        yield _against(item)
    yield Section(_("History"), (), (_history(report),))
    yield Section(_("Questions not found"), (), (_missed(report),))


def _facts(report: EvaluationReport) -> Iterator[str]:
    """Say what serves and which data it was measured on."""
    status = report.status
    serving = status.promotion
    yield (
        _("“{configuration}” serves with the model {model}, since {since}.").format(
            configuration=serving.configuration,
            model=serving.model,
            since=_moment(status.serving_since or serving.promoted_at),
        )
        if serving
        else _("No promoted configuration serves yet.")
    )
    yield _(
        "Questions: {count} in the set {golden}. Notes: {notes} (chunked: {chunked}); chunks: "
        "{chunks}."
    ).format(
        count=status.golden,
        golden=status.present.golden_hash,
        notes=status.notes,
        chunked=status.chunked,
        chunks=status.chunks,
    )
    if not report.configurations:
        yield _("There are no evaluations yet.")


def _configurations(report: EvaluationReport) -> ReportTable:
    """Return every configuration with its figures, its gate, and whether it may serve."""
    items = report.configurations
    table = comparison_table(
        [item.evaluation for item in items],
        report.gate,
        {item.evaluation.evaluation_id: item.gates.evidence for item in items},
        title=_("Last evaluation of each configuration"),
    )
    return replace(
        table,
        columns=(*table.columns, _("Serves")),
        rows=tuple((*row, _may_serve(item)) for row, item in zip(table.rows, items, strict=True)),
    )


def _may_serve(item: ReportedConfiguration) -> str:
    if item.refusal:
        return _("no: {reason}").format(reason=item.refusal)
    return _("★ serves") if item.serves else _("yes")


def _against(item: ReportedConfiguration) -> Section:
    """Say how a configuration compares with what serves, and which questions changed."""
    title = _("“{name}” against what serves").format(name=item.evaluation.configuration)
    if item.gates.against is None:
        said = item.gates.disturbance or _("There is no other evaluation to compare with.")
        return Section(title, [said])
    found = item.gates.against.found
    tables = (changes_table(found), flips_table(found, shown=SHOWN_QUESTIONS))
    shown = [table for table in tables if table.rows]
    return Section(title, [item.gates.against.in_words], shown)


def _history(report: EvaluationReport) -> ReportTable:
    return ReportTable(
        _("The latest evaluations, the newest first."),
        (
            _("Evaluated"),
            *(_("Configuration"), "Hit_Rate@10", _("95 % CI"), "MRR"),
            *(_("Questions"), _("Set"), _("disturbed")),
        ),
        tuple(
            (
                _moment(item.created_at),
                item.configuration,
                f"{item.hit_rate_at_10:.3f}",
                f"{item.hit_rate_at_10_low:.3f}–{item.hit_rate_at_10_high:.3f}",
                f"{item.mrr:.3f}",
                str(item.total_queries),
                item.golden_hash,
                str(item.degraded_queries),
            )
            for item in report.history
        ),
    )


def _missed(report: EvaluationReport) -> ReportTable:
    """Return the first questions that were missed, with their relevant notes."""
    return ReportTable(
        _("Questions that “{name}” does not find among the first ten: {count}").format(
            name=report.missed_by, count=len(report.missed)
        ),
        (_("Question"), _("Category"), _("Relevant notes")),
        tuple(
            (
                each.query,
                each.category,
                ", ".join(report.notes.get(key, str(key)) for key in each.relevant),
            )
            for each in report.missed[:SHOWN_QUESTIONS]
        ),
    )


def _moment(value: datetime) -> str:
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
