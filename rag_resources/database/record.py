"""`server.json`: what the embedded PostgreSQL stores in its home between starts.

It does not hold the password, which is stored beside the data (see `server`).
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rag_resources.files import write_atomically


@dataclass(frozen=True)
class ServerRecord:
    """Where the server's state is, and what its last start chose.

    Args:
        home: The home that the record was written for.
        place: The state folder, if it is outside the home.
        port: The port of the last start.
        version: PostgreSQL's version at the last start.
    """

    home: str
    place: str | None
    port: int
    version: str

    def write(self) -> None:
        """Write the record to its home, readable by the caller only."""
        text = json.dumps(asdict(self), indent=2) + "\n"
        write_atomically(_path(Path(self.home)), text, mode=0o600)


def read_record(home: Path) -> ServerRecord | None:
    """Read the record of a home; None before the first start, or if the record is unusable.

    A damaged record is ignored: the next start finds or chooses everything again. So is the record
    of a home copied from another one, which must not share the other's data. The record of a home
    that was moved stays valid.
    """
    try:
        record = ServerRecord(**json.loads(_path(home).read_text("utf-8")))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None
    written_for = Path(record.home)
    copied = written_for != home and state_folder(written_for).exists()
    return None if record.place and copied else record


def state_folder(home: Path) -> Path:
    """The folder where a home keeps its server's state."""
    return home / "postgres"


def _path(home: Path) -> Path:
    return state_folder(home) / "server.json"
