"""Where a benchmark keeps its data: a folder that outlives it, or a temporary one."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rag_resources.database.server import EmbeddedServer


@contextmanager
def home_folder(asked: Path | None) -> Iterator[Path]:
    """Lend the folder asked for, which keeps what is made in it, or one for this run alone."""
    with ExitStack() as stack:
        home = asked or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        home.mkdir(exist_ok=True, parents=True)
        home.chmod(0o755)  # or a root's server keeps its data elsewhere
        yield home


@contextmanager
def running_server(asked: Path | None) -> Iterator[EmbeddedServer]:
    """Run a server with its data in `home_folder`."""
    with home_folder(asked) as home:
        server = EmbeddedServer(home)
        server.up()
        try:
            yield server
        finally:
            server.down()
