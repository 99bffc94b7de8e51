"""Provides `dagster.yaml` in a Dagster home: the product's default, or the user's own file.

An unchanged default is replaced by a newer one. A file that a user wrote or changed is never
touched; the user is told once when there is a newer default.
"""

import hashlib
from pathlib import Path

from rag_resources.core.errors import InvalidParameterError
from rag_resources.files import PRIVATE, write_atomically
from rag_resources.languages.messages import _
from rag_resources.packaged import packaged

DEFAULT = packaged("rag_assets", "dagster.yaml")
RECORD = "dagster.default"
"""A file in RAG_HOME with the digest of the last default that was written or announced."""


def provide_instance_file(folder: Path, *, home: Path) -> list[str]:
    """Make sure that a Dagster home has an instance file that Dagster can load.

    Args:
        folder: The Dagster home; created if missing.
        home: RAG_HOME, which holds the record of the last default.

    Returns:
        Messages for the user, in Spanish.

    Raises:
        InvalidParameterError: The user's file cannot be read, or the folder cannot be written.
    """
    path, record = folder / "dagster.yaml", home / RECORD
    default = DEFAULT.read_bytes()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known = record.read_text("utf-8").strip() if record.exists() else ""
        own = path.read_bytes() if path.exists() else None
        # Written atomically: a daemon that reads an empty file falls back to SQLite.
        notices: list[str] = []
        if own is None:
            write_atomically(path, default, mode=PRIVATE)
        elif own != default and digest(own) == known:
            write_atomically(path, default, mode=PRIVATE)
            notices.append(
                _(
                    "{path} was brought up to date: it was an earlier version, unchanged, of the "
                    "product's own."
                ).format(path=path)
            )
        elif own != default and known and known != digest(default):
            notices.append(
                _(
                    "{path} is yours and is left alone. The product's Dagster configuration "
                    "has changed: compare it with {default}. This notice is not repeated."
                ).format(path=path, default=DEFAULT)
            )
        if known != digest(default):
            write_atomically(record, digest(default), mode=PRIVATE)
    except OSError as error:
        raise InvalidParameterError(
            _(
                "{path} cannot be read or written. Check the permissions or choose another folder "
                "in DAGSTER_HOME."
            ).format(path=path),
            path=path,
        ) from error
    return notices


def digest(content: bytes) -> str:
    """Return the digest that identifies a default."""
    return hashlib.sha256(content).hexdigest()
