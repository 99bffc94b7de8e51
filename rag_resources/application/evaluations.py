"""Use cases of evaluation: measure, compare, experiment and report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from rag_resources.configurations import load_configurations
from rag_resources.core.attribution import Attribution
from rag_resources.core.comparison import NonInferiority
from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import Evidence, EvidenceState
from rag_resources.core.experiment import Experiment
from rag_resources.core.frames import evaluation_frame, frame_bytes, question_frame
from rag_resources.core.gate import GateConfig
from rag_resources.database.pool import Database, PoolStatistics
from rag_resources.evaluation.answering import Answering
from rag_resources.evaluation.asking import count_steps, golden_questions
from rag_resources.evaluation.comparison import (
    EvaluationComparison,
    attribute_losses,
    compare_by_name,
    named_evaluation,
)
from rag_resources.evaluation.evidence import count_and_read_evidence
from rag_resources.evaluation.experiment import ExperimentResult, run_experiment
from rag_resources.evaluation.gates import Gates, read_gates
from rag_resources.evaluation.judging import Judging
from rag_resources.evaluation.runner import Evaluation, as_stored, evaluate
from rag_resources.files import LocalFiles, open_files
from rag_resources.languages.messages import _
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.serving.promotion import ServingVerdict, judge_serving
from rag_resources.serving.report import EvaluationReport
from rag_resources.settings import Settings
from rag_resources.store.comparison import Questions, evaluated_questions
from rag_resources.store.contents import count_contents
from rag_resources.store.evaluations import (
    evaluations_outside_runs,
    fetch_evaluation,
    history_of,
    latest_evaluation,
    latest_evaluations,
    list_evaluations,
)
from rag_resources.store.promotions import settled_until

if TYPE_CHECKING:
    import pandas as pd

MAX_EVALUATIONS = 10_000
"""Most evaluations of a frame."""


@dataclass(frozen=True, slots=True)
class Evaluations:
    """The evaluations of a database.

    Attributes:
        pipeline: Makes or returns the pipeline that is measured.
        measuring_pipeline: The same, but each question is embedded once for all configurations.
        judging: Builds the `Judging` for a judge's name, or for the settings' judge.
    """

    database: Database
    settings: Settings
    pipeline: Callable[[], RetrievalPipeline]
    measuring_pipeline: Callable[[], RetrievalPipeline]
    judging: Callable[[str | None], Judging | None]

    @property
    def gate(self) -> GateConfig:
        """The thresholds that an evaluation must reach."""
        return self.settings.gate

    def run(
        self,
        configuration: NamedConfiguration,
        *,
        judge: str | None = None,
        run_id: str | None = None,
        store: bool = True,
        progress: Callable[[int], None] = lambda _: None,
    ) -> Evaluation:
        """Ask every golden question, and store the evaluation.

        Args:
            configuration: The configuration to measure.
            judge: As for `Application.judging`.
            run_id: Dagster's run, if there is one.
            store: Whether the evaluation is stored.
            progress: Called with 1 after each of the `steps`.

        Raises:
            RagError: See `evaluate`.
        """
        return evaluate(
            self.database,
            self.pipeline(),
            configuration.name,
            configuration.retrieval,
            judging=self.judging(judge),
            answering=Answering(self.settings.answer_language, self.settings.answer_allowed_misses),
            gate=self.settings.gate,
            run_id=run_id,
            store=store,
            settings=self.settings.search,
            progress=progress,
        )

    def steps(self, judge: str | None = None) -> int:
        """Return how many steps `run` has: those of `evaluate`."""
        questions = len(golden_questions(self.database, None))
        return count_steps(questions, answers=True) + (questions if self.judging(judge) else 0)

    def experiment(
        self,
        experiment: Experiment,
        configurations: Mapping[str, RetrievalConfig],
        *,
        tag: str | None = None,
        progress: Callable[[int], None] = lambda _: None,
    ) -> ExperimentResult:
        """Measure many configurations and choose one; nothing is stored.

        Raises:
            RagError: See `run_experiment`.
        """
        return run_experiment(
            self.database,
            self.measuring_pipeline(),
            experiment,
            configurations,
            tag=tag,
            progress=progress,
        )

    def frame(self, *configurations: str, limit: int = MAX_EVALUATIONS) -> "pd.DataFrame":
        """Return stored evaluations as a data frame, a row each, the newest first.

        Its columns and dtypes are `core.frames.EVALUATIONS`.

        Args:
            configurations: Only of these; none takes all.
            limit: How many at most.
        """
        with self.database.transaction() as connection:
            found = history_of(connection, configurations or None, limit=limit)
        return evaluation_frame(reversed(found))

    def questions(self, *names: str) -> "pd.DataFrame":
        """Return the questions of stored evaluations as a data frame, a row each.

        Its columns and dtypes are `core.frames.QUESTIONS`.

        Args:
            names: Configurations, of which the newest evaluation is taken, or beginnings of
                evaluations' ids; none takes the newest of every configuration.

        Raises:
            InvalidParameterError: A name matches no evaluation, or several.
        """
        with self.database.snapshot() as connection:
            found = [named_evaluation(connection, name) for name in names]
            found = found or latest_evaluations(connection)
            asked = evaluated_questions(connection, [each.evaluation_id for each in found])
        return question_frame((each, asked[each.evaluation_id].values()) for each in found)

    def write_questions(self, made: Evaluation, path: Path) -> None:
        """Write the questions of an evaluation, stored or not, as a CSV or Parquet file.

        Raises:
            InvalidParameterError: The file cannot be written.
        """
        evaluation, asked = as_stored(made)
        evaluation = replace(
            evaluation, evaluation_id=made.evaluation_id or evaluation.evaluation_id
        )
        frame = question_frame([(evaluation, asked.values())])
        LocalFiles(path.absolute().parent).write(path.name, frame_bytes(frame, path.name))

    def measure(self, name: str, config: RetrievalConfig) -> Evaluation:
        """Ask every golden question, and store nothing.

        Raises:
            RagError: See `evaluate`.
        """
        return evaluate(self.database, self.pipeline(), name, config, store=False)

    def latest(self, configuration: str) -> StoredEvaluation | None:
        """Return the newest evaluation of a configuration; None if there is none."""
        with self.database.transaction() as connection:
            return latest_evaluation(connection, configuration)

    def latest_of_each(self) -> list[StoredEvaluation]:
        """Return the newest evaluation of every configuration."""
        with self.database.transaction() as connection:
            return latest_evaluations(connection)

    def find(self, evaluation_id: UUID) -> StoredEvaluation | None:
        """Return an evaluation by its id; None if there is none."""
        with self.database.transaction() as connection:
            return fetch_evaluation(connection, evaluation_id)

    def stored(self, made: Evaluation) -> StoredEvaluation:
        """Return an evaluation that `run` has stored.

        Raises:
            InvalidParameterError: It is not there.
        """
        found = self.find(made.evaluation_id) if made.evaluation_id else None
        if found is None:
            raise InvalidParameterError(_("There are no evaluations yet."))
        return found

    def outside_runs(self, after: tuple[datetime, UUID], *, limit: int) -> list[StoredEvaluation]:
        """Return the evaluations that no Dagster run made, oldest first, ties by id.

        Args:
            after: Time and id of the last one that is known already.
            limit: How many at most.
        """
        with self.database.transaction() as connection:
            until = settled_until(connection)
            return evaluations_outside_runs(connection, after, until=until, limit=limit)

    def newest(self, *, config_hash: str | None, limit: int) -> list[StoredEvaluation]:
        """Return the newest evaluations, of one configuration hash if it is given."""
        with self.database.transaction() as connection:
            return list_evaluations(connection, config_hash=config_hash, limit=limit)

    def stale(self, configurations: Mapping[str, NamedConfiguration]) -> list[str]:
        """Return the configurations without an undisturbed evaluation of the present state."""
        latest = {name: self.latest(name) for name in configurations}
        evidence = self.evidence([item for item in latest.values() if item], configurations)
        return [
            name
            for name, evaluation in latest.items()
            if evaluation is None
            or evaluation.is_disturbed
            or not evidence[evaluation.evaluation_id].is_current
        ]

    def evidence(
        self,
        evaluations: Sequence[StoredEvaluation],
        configurations: Mapping[str, NamedConfiguration] | None = None,
    ) -> dict[UUID, Evidence]:
        """Return whether evaluations are current, aged or stale, by id.

        Args:
            evaluations: To judge.
            configurations: By name, as they are now; None reads their files.
        """
        if configurations is None:
            configurations = load_configurations(self.settings.configuration_folders)
        with self.database.transaction() as connection:
            return count_and_read_evidence(
                connection,
                evaluations,
                configurations,
                settings=self.settings.search,
            )

    def compare(
        self, before: str, after: str
    ) -> tuple[EvaluationComparison, dict[str, NonInferiority]]:
        """Compare two evaluations, and judge the second's hit rates by the settings' margin.

        Raises:
            InvalidParameterError: See `compare_by_name`.
        """
        with self.database.snapshot() as connection:
            found = compare_by_name(connection, before, after)
        return found, found.inferiorities(self.settings.gate.margin)

    def attribute(self, found: EvaluationComparison) -> Attribution:
        """Ask the questions that a comparison lost again; see `attribute_losses`."""
        return attribute_losses(self.database, self.pipeline(), found)

    def gates(self, evaluation: StoredEvaluation) -> Gates:
        """Judge a stored evaluation by every gate, against what serves now."""
        evidence = self.evidence([evaluation])[evaluation.evaluation_id]
        return self._judged(evaluation, evidence)

    def gates_of(self, configuration: NamedConfiguration, made: Evaluation) -> Gates:
        """Judge an evaluation that `run` has just made, stored or not."""
        if made.evaluation_id is None:
            evaluation, asked = as_stored(made)
            return self._judged(evaluation, Evidence(EvidenceState.CURRENT), asked)
        stored = self.stored(made)
        evidence = self.evidence([stored], {configuration.name: configuration})
        return self._judged(stored, evidence[stored.evaluation_id])

    def _judged(
        self, evaluation: StoredEvaluation, evidence: Evidence, asked: Questions | None = None
    ) -> Gates:
        with self.database.transaction() as connection:
            count_contents(connection)
        with self.database.snapshot() as connection:
            return read_gates(
                connection, evaluation, self.settings.gate, evidence, self.settings.search, asked
            )

    def serving(self) -> ServingVerdict:
        """Return whether the serving configuration still passes, or why that cannot be judged."""
        with self.database.transaction() as connection:
            count_contents(connection)
            return judge_serving(connection, self.settings.gate, self.settings.search)

    def report(self) -> EvaluationReport:
        """Read the data of the evaluation report."""
        from rag_resources.serving.report import read_report

        configurations = load_configurations(self.settings.configuration_folders)
        return read_report(
            self.database,
            configurations,
            gate=self.settings.gate,
            settings=self.settings.search,
        )

    def write_report(self, report: EvaluationReport, output: Path | None = None) -> str:
        """Write a report as a page, and return where it is.

        Args:
            report: As read.
            output: A file; None writes below `FILES_URL`.

        Raises:
            InvalidParameterError: It cannot be written.
        """
        from rag_resources.serving.report import write_report

        if output:
            path = output.absolute()
            return write_report(report, LocalFiles(path.parent), path.name)
        return write_report(report, open_files(self.settings.files_address))

    def connections(self) -> PoolStatistics:
        """Return the statistics of the database's connection pool."""
        return self.database.statistics()
