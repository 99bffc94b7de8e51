"""`rag run`, `rag ui`, `rag dagster`: replace this process by programs of `rag_assets`."""

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from rag_resources.cli.output import MixesOption, SampleOption, is_quiet
from rag_resources.cli.running import ENV_FILE_TOLD
from rag_resources.cli.usage import PassedOn
from rag_resources.core.errors import RagError
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.settings import Settings

PROGRAM = "rag_assets"
FORGETTING_S = 3600.0
"""Time limit, enough for thousands of runs: Dagster deletes the events of each run separately."""


def run(
    sample: SampleOption = False,
    yes: MixesOption = False,
) -> None:
    """Replace this process by the main job."""
    flags = {
        "--sample": sample,
        "--yes": yes,
        "--quiet": is_quiet(),
    }
    _become("run", *(flag for flag, given in flags.items() if given))


def ui() -> None:
    """Replace this process by Dagster's webserver and daemon."""
    _become("ui")


def dagster(arguments: PassedOn = None) -> None:
    """Replace this process by Dagster's command line, with the instance of this RAG_HOME."""
    _become("dagster", *(arguments or []))


def forget_runs(settings: "Settings", tenant: str) -> bool:
    """Delete Dagster's records of a tenant's runs; False if some may be left."""
    if not (settings.instance_folder / "dagster.yaml").exists():
        return True  # Nothing ever ran here.
    command = [sys.executable, "-m", PROGRAM, "forget", "--", tenant]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=FORGETTING_S, check=False)  # noqa: S603 - no shell
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _become(*arguments: str) -> None:
    """Replace this process, so that signals and the exit code are those of the program.

    Raises:
        RagError: It cannot be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        command = [sys.executable, "-m", PROGRAM, *arguments]
        os.execve(sys.executable, command, {**os.environ, ENV_FILE_TOLD: "1"})  # noqa: S606 - our own program
    except OSError as error:
        message = _("{program} cannot be run: {reason}. Reinstall the package.").format(
            program=sys.executable, reason=error.strerror
        )
        raise RagError(message) from error
