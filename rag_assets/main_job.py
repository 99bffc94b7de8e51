"""The main job: index every month, evaluate every configuration, promote the best.

It runs the code location's jobs in this process on the real instance, so that the UI shows them.
It evaluates only what has changed since its last evaluation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import dagster as dg
from dagster_postgres.utils import DagsterPostgresException
from sqlalchemy.exc import DBAPIError

from rag_assets.automation import MAIN_JOB
from rag_assets.code_location import build_defs
from rag_assets.configured import Configured, read_configured
from rag_assets.keys import EVALUATION_REPORT, GOLDEN_DATASET, NOTES, evaluation_key
from rag_assets.main_job_console import (
    evaluating,
    print_results,
    progress_bars,
    tell_how_to_evaluate,
    tell_phase,
    tell_unread,
    tell_unread_again,
)
from rag_assets.runs.failures import failure_reasons
from rag_assets.runs.liveness import alive, end_dead_runs
from rag_assets.runs.months import FAILED_NOTES
from rag_assets.runs.origin import ORIGIN_TAGS, show_on_timeline
from rag_assets.runs.partitions import full_window, monthly
from rag_assets.runs.storage import keep_connections
from rag_resources.application import Application, open_application
from rag_resources.cli.output import warn, working
from rag_resources.core.errors import (
    DatabaseUnavailableError,
    RagError,
)
from rag_resources.database.faults import fault_of
from rag_resources.ingestion.content_source import ContentSource
from rag_resources.languages.labels import label
from rag_resources.languages.messages import _
from rag_resources.logs import log_to_stderr
from rag_resources.programs import UI, running_program
from rag_resources.settings import Settings


def main_job(settings: Settings, source: ContentSource, *, mixes: bool = False) -> None:
    """Run everything with progress bars, and print the table of configurations.

    Notes that could not be indexed do not stop the job; they are reported at the end.

    Args:
        settings: The settings of this run.
        source: The notes and questions to read.
        mixes: Whether a person consented to several sources.

    Raises:
        RagError: A step or some notes failed; the UI shows the run.
        DatabaseError: Dagster's own database was lost meanwhile, or its disk is full.
    """
    try:
        _main_job(settings, source, mixes)
    except (DagsterPostgresException, DBAPIError) as error:
        # SQLAlchemy wraps psycopg2's error, and Dagster wraps that.
        wrapped = error if isinstance(error, DBAPIError) else error.__cause__
        cause = getattr(wrapped, "orig", error)
        reason = str(cause).strip().partition("\n")[0]
        fault = fault_of(getattr(cause, "pgcode", None), str(cause), reason=reason)
        raise fault or DatabaseUnavailableError(
            _(
                "The database in which Dagster keeps its runs does not answer: {reason}. What is "
                "stored is safe: when it runs again, repeat the command."
            ).format(reason=reason)
        ) from error


def _main_job(settings: Settings, source: ContentSource, mixes: bool) -> None:
    configured = read_configured(settings)
    if "log_level" not in settings.model_fields_set:
        # Records are in English and not for users, who are told in sentences.
        settings = settings.model_copy(update={"log_level": "error"})
    log_to_stderr(level=settings.log_level)
    with (
        open_application(settings) as application,
        dg.DagsterInstance.get() as instance,
    ):
        keep_connections(instance)
        end_dead_runs(instance)
        runs = _Runs(build_defs(settings), settings, instance)
        with progress_bars(application, configured.window_models):
            choice = {"config": {"sample": source.asked_for, "mixes": mixes}}
            tell_phase(_("Reading notes and documents…"))
            bad_notes = runs.months("ingest", ops={"notes": choice})
            questions = None
            if source.golden or application.golden.entries():
                questions = runs.questions(ops={"golden_dataset": choice})
            windows = configured.window_models
            window = full_window(settings)
            is_indexed = application.migration.is_done(window, window_models=windows)
            if not (is_indexed and application.graph.is_done(window)):
                tell_phase(_("Indexing: chunks, vectors and graph…"))
                bad_notes += runs.months("index")
            progress = runs.execute("migration_progress")
        unread = tell_unread(application, window)
        if absent := runs.told(NOTES, "absent_notes"):
            warn(absent)
        if questions and (unknown := runs.told(GOLDEN_DATASET, "unknown_keys")):
            warn(unknown)
        if not application.golden.entries():
            tell_how_to_evaluate()
            tell_unread_again(unread)
            _succeeded(progress, settings)
            _end_with(bad_notes)
            return
        if questions:
            _succeeded(questions, settings)
        stale = application.evaluations.stale(configured.configurations)
        phase = evaluating(stale)
        tell_phase(phase)
        with working(phase):
            _evaluate(runs, application, configured, stale)
            before = application.serving.promotion()
            promotion = runs.execute("promote")
            report = runs.execute("evaluate", asset_selection=[EVALUATION_REPORT])
        print_results(application, configured, before)
        tell_unread_again(unread)
        _succeeded(promotion, settings)
        _succeeded(report, settings)
        _succeeded(progress, settings)
    _end_with(bad_notes)


def _end_with(bad_notes: Sequence[str]) -> None:
    """Report the notes that could not be indexed, if any."""
    if bad_notes:
        raise RagError("\n".join(bad_notes))


@dataclass(frozen=True)
class _Runs:
    """Executes jobs in this process.

    Attributes:
        definitions: Include the jobs.
        settings: The settings that the definitions were built from.
        instance: Records the runs.
    """

    definitions: dg.Definitions
    settings: Settings
    instance: dg.DagsterInstance

    def months(self, job: str, *, ops: Mapping[str, Any] | None = None) -> list[str]:
        """Execute a job over all months in one run; only single notes may fail.

        Args:
            job: Its name.
            ops: Run configuration of its assets.

        Returns:
            Messages about the notes that failed.
        """
        keys = monthly(self.settings).get_partition_keys()
        window = {
            "dagster/asset_partition_range_start": keys[0],
            "dagster/asset_partition_range_end": keys[-1],
        }
        result = self.execute(job, tags=window, ops=ops)
        if failed_for_notes_only(self.instance, result):
            return [_reason(result, self.settings)]
        _succeeded(result, self.settings)
        return []

    def questions(self, *, ops: Mapping[str, Any] | None = None) -> dg.ExecuteInProcessResult:
        """Import the golden questions, which must succeed, and check them.

        If only the check fails, the notes can be indexed meanwhile; nothing must be evaluated.

        Returns:
            The run.
        """
        result = self.execute("golden", ops=ops, asset_selection=[GOLDEN_DATASET])
        if not result.get_asset_materialization_events():
            _succeeded(result, self.settings)
        elif not result.success:
            warn(
                _(
                    "The golden questions do not pass their check, so nothing will be evaluated "
                    "or promoted; the notes are indexed meanwhile. The reason is told at the end."
                )
            )
        return result

    def told(self, asset: dg.AssetKey, name: str) -> str:
        """Return a text that the last materialisation of an asset has; empty if it has none.

        Args:
            asset: One whose latest month, if it has months, has the text.
            name: As in `labels`.
        """
        months = monthly(self.settings).get_partition_keys()[-1:] if asset == NOTES else None
        wanted = dg.AssetRecordsFilter(asset_key=asset, asset_partitions=months)
        records = self.instance.fetch_materializations(wanted, limit=1).records
        made = records[0].asset_materialization if records else None
        said = made.metadata.get(label(name)) if made else None
        return str(said.value) if said and said.value != "–" else ""

    def execute(
        self,
        job: str,
        *,
        tags: Mapping[str, str] | None = None,
        ops: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> dg.ExecuteInProcessResult:
        """Execute a job; the caller checks how it ended."""
        run_id = str(uuid4())
        with alive(run_id, self.settings) as own_tags:
            result = self.definitions.resolve_job_def(job).execute_in_process(
                instance=self.instance,
                raise_on_error=False,
                # The console shows progress bars; the UI has the whole log.
                run_config={
                    "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                    "ops": ops or {},
                },
                run_id=run_id,
                tags={**own_tags, **ORIGIN_TAGS, MAIN_JOB: "", **(tags or {})},
                **options,
            )
        show_on_timeline(self.instance, run_id)
        return result


def _succeeded(result: dg.ExecuteInProcessResult, settings: Settings) -> None:
    if not result.success:
        raise RagError(_reason(result, settings))


def _reason(result: dg.ExecuteInProcessResult, settings: Settings) -> str:
    ui = running_program(settings.rag_home, UI)
    where = (
        _("Open it at {url}.").format(url=ui.address)
        if ui
        else _("Open it with “rag ui” (or “make ui”).")
    )
    return _("The run {run_id} has failed: {reason}\n{where}").format(
        run_id=result.run_id, reason=failure_reasons(result.all_events), where=where
    )


def failed_for_notes_only(instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult) -> bool:
    """Whether every asset was started and all failures were caused by single notes."""
    failed = [
        event.step_failure_data.user_failure_data for event in result.get_step_failure_events()
    ]
    planned = instance.all_logs(
        result.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED
    )
    started = {event.step_key for event in result.all_events if event.is_step_start}
    return (
        bool(failed)
        and all(entry.step_key in started for entry in planned)
        and all(data and FAILED_NOTES in data.metadata for data in failed)
    )


def _evaluate(
    runs: _Runs, application: Application, configured: Configured, names: list[str]
) -> None:
    """Evaluate these configurations; one left without a current evaluation is an error."""
    if not names:
        return
    result = runs.execute("evaluate", asset_selection=[evaluation_key(name) for name in names])
    if application.evaluations.stale(configured.configurations):
        _succeeded(result, runs.settings)
