"""`python -m rag_assets`: the main job, the UI, Dagster's command line, a worker, forgetting."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Annotated, Any, TextIO, cast

if (
    __name__ == "__main__"
):  # Nothing is to be kept yet, and an import tells an interruption in English.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))

import psutil
import typer

from rag_resources.cli.output import (
    MixesOption,
    QuietOption,
    SampleOption,
    be_quiet,
    consented,
    note,
    warn,
)
from rag_resources.cli.usage import (
    INTERRUPTED,
    PassedOn,
    command,
    group,
    passing_on,
    run_app,
    tell_interruption,
)
from rag_resources.core.errors import InvalidParameterError, MixedSourcesError
from rag_resources.files import OTHERS
from rag_resources.languages.messages import _, ngettext
from rag_resources.logs import log_to_stderr
from rag_resources.programs import announced
from rag_resources.settings import Settings, load_settings

INTERRUPTION_S = 3.0
"""How long an interrupted run may take to store its end."""

app = group("rag_assets", _("The main job and the Dagster UI."))


@command(
    app,
    "run",
    _("The main job: ingests, indexes, evaluates and promotes."),
)
def run(
    sample: SampleOption = False,
    yes: MixesOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run the main job on the Dagster instance."""
    be_quiet(quiet)
    from rag_resources.application import open_application

    settings = load_settings()
    with announced(settings.ensure_home(), "rag run"), _ending_when_interrupted():
        _prepare(settings, migrating=True)
        with open_application(settings) as application:
            notes = application.notes
            try:
                source = notes.source_to_read(sample=sample, mixes=yes)
            except MixedSourcesError as error:
                yes = consented(error)
                source = notes.source_to_read(mixes=yes)
        if source.notice:
            warn(source.notice)
        from rag_assets.main_job import main_job

        main_job(settings, source, mixes=yes)


@command(app, "ui", _("Opens the Dagster UI, with its daemon, until interrupted."))
def ui() -> None:
    """Serve the Dagster UI until interrupted."""
    settings = load_settings()
    _prepare(settings, migrating=False)
    from rag_assets.webserver import serve

    raise typer.Exit(serve(settings))


@passing_on(
    app,
    "dagster",
    _("Runs Dagster's own command line with the instance of this RAG_HOME."),
)
def dagster(arguments: PassedOn = None) -> None:
    """Replace this process by Dagster's command line, in the environment of its instance."""
    _prepare(load_settings(), migrating=False)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "dagster", *(arguments or [])])  # noqa: S606 - the caller's own arguments


@command(
    app,
    "worker",
    _(
        "Executes the runs that Celery hands out, until it gets SIGTERM or Ctrl+C; it finishes "
        "those that it has."
    ),
)
def worker(
    runs: Annotated[int, typer.Option("--runs", min=1, max=64, help=_("How many at once."))] = 1,
) -> None:
    """Execute the runs that Celery distributes until interrupted."""
    settings = load_settings()
    if settings.celery_broker_url is None:
        raise InvalidParameterError(
            _(
                "CELERY_BROKER_URL is missing: the address of the Redis through which Celery "
                "hands out the runs, such as redis://127.0.0.1:6379/1."
            )
        )
    if find_spec("dagster_celery") is None:
        raise InvalidParameterError(
            _(
                "The packages of Celery are missing. Install them with “pip install "
                "'brain-sync-rag[celery]'”."
            )
        )
    _prepare(settings, migrating=False)
    from rag_assets.runs.celery_launcher import work

    note(_("Waiting for runs, {runs} at once (Ctrl+C to end).").format(runs=runs))
    work(runs=runs)


@command(
    app,
    "forget",
    _(
        "Deletes what Dagster keeps of the runs of a tenant that has left: questions, passages "
        "and logs. rag tenant delete does it."
    ),
)
def forget(
    tenant: Annotated[
        str, typer.Argument(metavar="CLIENTE", help=_("Name of the tenant, that of TENANT."))
    ],
) -> None:
    """Delete Dagster's records of the runs of a deleted tenant."""
    settings = load_settings()
    _prepare(settings, migrating=False)
    import dagster as dg

    from rag_assets.instance import forget_runs

    with dg.DagsterInstance.get() as instance:
        deleted = forget_runs(instance, tenant)
    note(
        ngettext(
            "{count} run of {name} deleted from Dagster's record.",
            "{count} runs of {name} deleted from Dagster's record.",
            deleted,
        ).format(count=deleted, name=tenant)
    )


def _prepare(settings: Settings, *, migrating: bool) -> None:
    from rag_assets.instance import prepare

    for notice in prepare(settings, migrating=migrating):
        note(notice)
    # From here on, also for webserver, daemon and their runs: Dagster's logs may quote notes. Not
    # before: root's embedded server runs as another user, who must be able to enter the home.
    os.umask(OTHERS)


@contextmanager
def _ending_when_interrupted() -> Iterator[None]:
    """Let an interruption end this process in time, whatever it is doing.

    Dagster replaces the handler while it executes steps and may lose an interruption between two,
    and a model that computes answers none. Python writes each signal to the wakeup descriptor,
    whichever handler it has.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_end_when_interrupted, args=[reader], daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)


def _end_when_interrupted(reader: int) -> None:
    while os.read(reader, 1) != bytes([signal.SIGINT]):
        pass
    time.sleep(INTERRUPTION_S)
    tell_interruption()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getsid(child.pid) == os.getsid(0):  # PostgreSQL has a session of its own.
                child.kill()
    os._exit(INTERRUPTED)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger is not one of Dagster's attempts to reconnect."""
    return not record.getMessage().startswith("Retrying failed database connection")


class _OwnErrors:
    """Standard error without the lines that Dagster itself writes there, in English.

    Dagster writes one for each event that it cannot store; the command reports the problem once.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if text.startswith("Exception while writing logger call to event log"):
            return len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def main() -> None:
    """Run a command; one of our own errors becomes a message on stderr."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stderr = cast(TextIO, _OwnErrors(sys.stderr))
    log_to_stderr()
    logging.getLogger().addFilter(_is_news)
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # It warns of each attempt as well.
    sys.exit(run_app(app, sys.argv[1:], program="python -m rag_assets"))


if __name__ == "__main__":
    main()
