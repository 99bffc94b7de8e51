"""`server.json`: what the embedded PostgreSQL keeps in its home between starts.

The password is not in it: it lies beside the data, see `server`.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rag_resources.files import write_atomically


@dataclass(frozen=True)
class ServerRecord:
    """Where the state is, and what the last start chose.

    Args:
        home: The home it was written for.
        place: The folder of the state if that is not in the home.
        port: The port of the last start.
        version: PostgreSQL's version then.
    """

    home: str
    place: str | None
    port: int
    version: str

    def write(self) -> None:
        """Keep it in its home, for the caller's eyes only."""
        text = json.dumps(asdict(self), indent=2) + "\n"
        write_atomically(_path(Path(self.home)), text, mode=0o600)


def read_record(home: Path) -> ServerRecord | None:
    """Read the record of a home; none before the first start, or if it does not count.

    A damaged one does not: what it says is found or chosen anew at the next start. Nor does that of
    a copy of another home, unlike one that moved: it must not share the other's data.
    """
    try:
        record = ServerRecord(**json.loads(_path(home).read_text("utf-8")))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None
    written_for = Path(record.home)
    copied = written_for != home and state_folder(written_for).exists()
    return None if record.place and copied else record


def state_folder(home: Path) -> Path:
    """Where a home keeps the state of its server."""
    return home / "postgres"


def _path(home: Path) -> Path:
    return state_folder(home) / "server.json"
