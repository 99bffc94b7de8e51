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

EARLIER_DEFAULTS = frozenset(
    {
        "8445b6f75bde44146c3b680b39a372bd89b7477010f04466ad209b4e9ee4804a",
        "dcf5eb1a6808b5dc0dcdb5af64fed65db8297cc7c18179a4550e6ce510719e24",
        "53e4370ac96bc7ab54fa905230a01217d89877f1b3ad7ee4889e3e560212a0f2",
        "d1499081b7b3d2e312f8040f8971dda642e8d9c3152e9675480a9a46d2fb5630",
    }
)
"""Digests of the defaults written before digests were recorded."""

MOVED_MODULES = {
    "rag_assets.run_launcher": "rag_assets.runs.launcher",
    "rag_assets.run_queue": "rag_assets.runs.queue",
}
"""Module names in earlier defaults, and their present names."""


def provide_instance_file(folder: Path, *, home: Path) -> list[str]:
    """Make sure that a Dagster home has an instance file that Dagster can load.

    Args:
        folder: The Dagster home; created if missing.
        home: RAG_HOME, which holds the record of the last default.

    Returns:
        Messages for the user, in Spanish.

    Raises:
        InvalidParameterError: The user's file cannot be read or names a module that has moved; or
            the folder cannot be written.
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
        elif own != default and digest(own) in EARLIER_DEFAULTS | {known}:
            write_atomically(path, default, mode=PRIVATE)
            notices.append(
                _(
                    "{path} was brought up to date: it was an earlier version, unchanged, of the "
                    "product's own."
                ).format(path=path)
            )
        elif own != default:
            _refuse_moved_modules(path, own.decode("utf-8", errors="replace"))
            if known and known != digest(default):
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


def _refuse_moved_modules(path: Path, text: str) -> None:
    moved = [f"{old} → {new}" for old, new in MOVED_MODULES.items() if old in text]
    if moved:
        raise InvalidParameterError(
            _(
                "{path} names modules that have moved. Edit it and replace: {moved}. Nothing was "
                "changed."
            ).format(path=path, moved=", ".join(moved)),
            path=path,
        )
