"""Opens the settings and the application for a command."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from rag_resources.cli.output import warn, working
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.application import Application
    from rag_resources.configurations import Configurations
    from rag_resources.settings import Settings


def read_settings() -> "Settings":
    """Read the environment."""
    from rag_resources.settings import load_settings

    return load_settings()


@contextmanager
def application() -> Iterator["Application"]:
    """Open the application for a command; starts the embedded server if that has data.

    Raises:
        DatabaseNotReadyError: Nothing was ever stored here; nothing was created.
    """
    from rag_resources.application import open_application
    from rag_resources.database.locate import require_database

    settings = read_settings()
    require_database(settings)
    with ExitStack() as stack:
        with working(_("Opening the database…")):
            opened = stack.enter_context(open_application(settings))
        yield opened
        if "configuration_files" in vars(opened):  # It used them.
            tell_left_out(opened.configurations)


def tell_left_out(configurations: "Configurations") -> None:
    """Warn of each file of a configuration that was left out."""
    for problem in configurations.problems:
        warn(_("A configuration with an error is left out. {problem}").format(problem=problem))
