"""The main job: index every month, evaluate every configuration, promote the best.

It runs the code location's jobs in this process on the real instance, so that the UI shows them.
It evaluates only what has changed since its last evaluation.
"""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import dagster as dg
from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.log_manager import get_log_record_metadata
from dagster._core.remote_origin import InProcessCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster_postgres.utils import DagsterPostgresException
from sqlalchemy.exc import DBAPIError

from rag_assets.configured import Configured, read_configured
from rag_assets.definitions import build_defs
from rag_assets.keys import EVALUATION_REPORT, MAIN_JOB, evaluation_key
from rag_assets.partitions import full_window, monthly
from rag_assets.runs.failures import INTERRUPTED, failure_reasons
from rag_assets.runs.liveness import alive
from rag_assets.runs.months import FAILED_NOTES
from rag_assets.runs.storage import keep_connections
from rag_resources.application import Application, open_application
from rag_resources.cli.output import is_quiet, say, show_table, warn, working
from rag_resources.cli.status import documents_in_words
from rag_resources.configurations import DEFAULT_CONFIGURATION
from rag_resources.core.errors import DatabaseUnavailableError, RagError
from rag_resources.core.types import TimeWindow
from rag_resources.database.faults import fault_of
from rag_resources.evaluation.summary import comparison_table
from rag_resources.ingestion.content_source import ContentSource
from rag_resources.ingestion.ingest import outside_in_words
from rag_resources.languages.messages import _
from rag_resources.logs import log_to_stderr
from rag_resources.programs import UI, running_program
from rag_resources.settings import Settings

LOCATION, MODULE = "brain_sync_rag", "rag_assets.definitions"
"""Name and module of the code location, as in `workspace.yaml`."""


_REPOSITORY = RemoteRepositoryOrigin(
    InProcessCodeLocationOrigin(LoadableTargetOrigin(module_name=MODULE), location_name=LOCATION),
    SINGLETON_REPOSITORY_NAME,
)


ORIGIN_TAGS = {REPOSITORY_LABEL_TAG: _REPOSITORY.get_label()}
"""Tags to create a run with, so that its job's page shows it."""


def show_on_timeline(instance: dg.DagsterInstance, run_id: str) -> None:
    """Let the timeline show a run that was created with `ORIGIN_TAGS` and has ended."""
    run = instance.get_run_by_id(run_id)
    if run is not None and run.is_finished:
        origin = _REPOSITORY.get_job_origin(run.job_name)
        instance.run_storage.replace_job_origin(run, origin)


SHOWN = 20
LAUNCHED_BY = "user"
"""Tag that the UI shows as what launched a run; without it a run was “manually launched”."""


def main_job(settings: Settings, source: ContentSource, *, mixes: bool = False) -> None:
    """Run everything, say what is done, and print the table of configurations.

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
    with open_application(settings) as application, dg.DagsterInstance.get() as instance:
        keep_connections(instance)
        runs = Runs(settings, instance)
        window = full_window(settings)
        choice = {"config": {"sample": source.asked_for, "mixes": mixes}}
        results = []
        with runs.phase(_("Reading notes and documents…")):
            bad_notes = runs.months("ingest", ops={"notes": choice})
            if source.golden or application.golden.entries():
                golden = runs.execute("golden", ops={"golden_dataset": choice})
                if not golden.get_asset_materialization_events():
                    runs.require(golden)
                results.append(golden)
        if not (application.migration.is_done(window) and application.graph.is_done(window)):
            with runs.phase(_("Indexing: chunks, vectors and graph…")):
                bad_notes += runs.months("index")
        results.append(runs.execute("migration_progress"))
        _tell_documents(application, window)
        if application.golden.entries():
            # What is not valid in the questions fails here: nothing is evaluated or promoted.
            runs.require(*results)
            stale = application.evaluations.stale(configured.configurations)
            with runs.phase(_("Evaluating: {names}…").format(names=", ".join(stale) or "–")):
                if stale:
                    evaluated = runs.execute("evaluate", assets=map(evaluation_key, stale))
                    if application.evaluations.stale(configured.configurations):
                        runs.require(evaluated)
                results.append(runs.execute("promote"))
                results.append(runs.execute("evaluate", assets=[EVALUATION_REPORT]))
            _print_results(application, configured)
        else:
            say(
                _(
                    "The notes are indexed and can be searched. There are no golden questions with "
                    "an answer, so nothing is evaluated or promoted: name a file of them in "
                    "GOLDEN_SOURCE (“rag init FOLDER” proposes 20) and repeat."
                )
            )
        runs.require(*results)
    if bad_notes:
        raise RagError("\n".join(bad_notes))


def _tell_documents(application: Application, window: TimeWindow) -> None:
    """Say how many documents could be read, and which notes no month processes."""
    counted, missing = application.documents.count(window), application.documents.count_missing()
    failed = counted.statuses.get("failed", 0)
    if counted.documents:
        tell = warn if failed or missing else say
        tell(documents_in_words(counted.documents, failed, missing))
    if outside := application.notes.outside(window, limit=SHOWN):
        warn(outside_in_words(outside))


def _print_results(application: Application, configured: Configured) -> None:
    """Print the table of the configurations that are switched on, and what serves."""
    evaluations = application.evaluations
    latest = [
        item
        for item in evaluations.latest_of_each()
        if item.configuration in configured.configurations
    ]
    title = _("Configurations evaluated (@k: Hit_Rate@k)")
    evidence = evaluations.evidence(latest)
    show_table(comparison_table(latest, evaluations.gate, evidence, title=title))
    promotion = application.serving.promotion()
    if promotion:
        say(
            _("The configuration “{name}” serves, with the model {model}.").format(
                name=promotion.configuration, model=promotion.model
            )
        )
    else:
        say(
            _("No configuration was promoted yet: until then “{default}” answers.").format(
                default=DEFAULT_CONFIGURATION
            )
        )
    say(_('Ask with “rag retrieve "…"”, or look at Dagster with “rag ui” (or “make ui”).'))


def _where(settings: Settings) -> str:
    """Say where a run is seen."""
    ui = running_program(settings.rag_home, UI)
    return (
        _("Open it at {url}.").format(url=ui.address)
        if ui
        else _("Open it with “rag ui” (or “make ui”).")
    )


class _Console(logging.Handler):
    """Shows what a step logs: warnings for good, the rest until the next line comes."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.show: Callable[[str], None] = lambda _: None

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record, unless it is an event of Dagster."""
        told = get_log_record_metadata(record)
        if told["dagster_event"] is None:
            (warn if record.levelno == logging.WARNING else self.show)(told["orig_message"])


class Runs:
    """Executes jobs in this process.

    Args:
        settings: Those of the definitions.
        instance: Records the runs.
    """

    def __init__(self, settings: Settings, instance: dg.DagsterInstance) -> None:
        self.settings, self.instance, self._console = settings, instance, _Console()

        @dg.logger
        def console(_: dg.InitLoggerContext) -> logging.Logger:
            log = logging.Logger("rag run")
            log.addHandler(self._console)
            return log

        shown = dg.Definitions(loggers={"console": console})
        self._definitions = dg.Definitions.merge(build_defs(settings), shown)

    @contextmanager
    def phase(self, message: str) -> Iterator[None]:
        """Say what begins, and show its progress while it lasts."""
        if not is_quiet():
            say(message)
            sys.stdout.flush()
        with working(message) as self._console.show:
            yield

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
            return [self._reason(result)]
        self.require(result)
        return []

    def execute(
        self,
        job: str,
        *,
        tags: Mapping[str, str] | None = None,
        ops: Mapping[str, Any] | None = None,
        assets: Iterable[dg.AssetKey] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """Execute a job, or only some of its assets; the caller checks how it ended."""
        run_id = str(uuid4())
        with alive(run_id, self.settings) as own_tags:
            result = self._definitions.resolve_job_def(job).execute_in_process(
                instance=self.instance,
                raise_on_error=False,
                run_config={"loggers": {"console": {}}, "ops": ops or {}},
                run_id=run_id,
                tags={
                    **own_tags,
                    **ORIGIN_TAGS,
                    MAIN_JOB: "",
                    LAUNCHED_BY: "rag run",
                    **(tags or {}),
                },
                asset_selection=list(assets) if assets else None,
            )
        show_on_timeline(self.instance, run_id)
        failed = [event.step_failure_data.error for event in result.get_step_failure_events()]
        if any(error and error.cls_name in INTERRUPTED for error in failed):
            raise KeyboardInterrupt  # Dagster took it for the failure of a step.
        return result

    def require(self, *results: dg.ExecuteInProcessResult) -> None:
        """Raise the reason of the first run that failed."""
        for result in results:
            if not result.success:
                raise RagError(self._reason(result))

    def _reason(self, result: dg.ExecuteInProcessResult) -> str:
        return _("The run {run_id} has failed: {reason}\n{where}").format(
            run_id=result.run_id,
            reason=failure_reasons(result.all_events),
            where=_where(self.settings),
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
