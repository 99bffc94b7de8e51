"""Reads the data of the evaluation report in one database snapshot; `reporting.page` shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from rag_resources.core.attribution import EvaluatedQuestion
from rag_resources.core.configuration import NamedConfiguration
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import SearchSettings
from rag_resources.core.gate import GateConfig
from rag_resources.database.pool import Database
from rag_resources.evaluation.evidence import EvidenceReader
from rag_resources.evaluation.gates import Gates, read_gates
from rag_resources.languages.messages import _
from rag_resources.serving.promotion import refusal
from rag_resources.store.comparison import evaluated_questions, name_notes
from rag_resources.store.contents import count_contents
from rag_resources.store.evaluations import history_of
from rag_resources.store.promotions import Promotion, list_promotions
from rag_resources.store.status import DatabaseStatus, read_status

LEADING = 12
"""Configurations that are drawn and compared; nobody reads more lines."""
HISTORY = 500
PROMOTIONS = 50


@dataclass(frozen=True, slots=True)
class ReportedConfiguration:
    """A configuration with its newest evaluation.

    Attributes:
        named: The configuration as it is now; None if its file is gone.
        gates: The verdicts of the present gates.
        refusal: Why it may not serve on this evaluation, in Spanish; None if it may.
    """

    named: NamedConfiguration | None
    gates: Gates
    refusal: str | None

    @property
    def evaluation(self) -> StoredEvaluation:
        """Its newest evaluation."""
        return self.gates.evaluation

    @property
    def name(self) -> str:
        """The configuration's name."""
        return self.evaluation.configuration

    def is_of(self, promotion: Promotion | None) -> bool:
        """Whether this is the configuration that the promotion made serve."""
        return promotion is not None and promotion.configuration == self.name


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """The data of the report.

    Attributes:
        configurations: Every evaluated configuration, best first.
        leading: Those that are drawn and compared: the best, and the one that serves.
        history: The newest evaluations of those, oldest first.
        promotions: The newest, oldest first.
        missed: The questions that the one that serves, or else the best, does not find.
        missed_by: That one's name; empty without evaluations.
        notes: The relevant notes of those questions, if they still exist.
    """

    read_at: datetime
    status: DatabaseStatus
    gate: GateConfig
    configurations: tuple[ReportedConfiguration, ...]
    leading: tuple[ReportedConfiguration, ...]
    history: tuple[StoredEvaluation, ...]
    promotions: tuple[Promotion, ...]
    missed: tuple[EvaluatedQuestion, ...]
    missed_by: str
    notes: Mapping[UUID, str]


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
        evidence = EvidenceReader(connection, gate, settings)

        def judged(item: StoredEvaluation) -> ReportedConfiguration:
            named = configurations.get(item.configuration)
            own = evidence.judge(item, named.retrieval if named else None)
            gates = read_gates(connection, item, gate, own, settings)
            refused = (
                refusal(connection, named, gates, by_itself=True)
                if named
                else _("there is no configuration of that name any more")
            )
            return ReportedConfiguration(named, gates, refused)

        reported = [judged(item) for item in sorted(status.evaluations, key=_best_first)]
        leading = _leading(reported, status.promotion)
        names = [item.name for item in leading]
        history = history_of(connection, names, limit=HISTORY)
        main = [item for item in leading if item.is_of(status.promotion)] or leading
        missed: list[EvaluatedQuestion] = []
        if main:
            key = main[0].evaluation.evaluation_id
            asked = evaluated_questions(connection, [key])[key].values()
            missed = sorted(
                (each for each in asked if not each.is_found), key=lambda each: each.query
            )
        relevant = sorted({note for each in missed for note in each.relevant})
        return EvaluationReport(
            read_at=datetime.now(UTC),
            status=status,
            gate=gate,
            configurations=tuple(reported),
            leading=tuple(leading),
            history=tuple(history),
            promotions=tuple(list_promotions(connection, limit=PROMOTIONS)),
            missed=tuple(missed),
            missed_by=main[0].name if main else "",
            notes=name_notes(connection, relevant),
        )


def _best_first(evaluation: StoredEvaluation) -> tuple[float, float, str]:
    return -evaluation.hit_rate_at_10, -evaluation.mrr, evaluation.configuration


def _leading(
    ordered: Sequence[ReportedConfiguration], promotion: Promotion | None
) -> list[ReportedConfiguration]:
    """Return the best configurations; if the serving one is missing, it replaces the last."""
    serving = [item for item in ordered[LEADING:] if item.is_of(promotion)]
    return [*ordered[: LEADING - len(serving)], *serving]
