"""Lists a folder of documents, with the metadata from names and sidecar files.

Registering the found files is in `documents.arrival`.
"""

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import yaml

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.path_pattern import PathPattern
from rag_resources.core.quoting import printable
from rag_resources.core.types import RejectedRecord
from rag_resources.core.yaml_text import load_yaml, refuse_duplicate_keys
from rag_resources.documents.media_types import SUFFIXES, UNREAD
from rag_resources.documents.metadata import checked_metadata
from rag_resources.languages.messages import _

SIDECARS = (".yaml", ".yml")
"""`plan.pdf.yaml` has the metadata of `plan.pdf`."""
MAX_SIDECAR_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of a source.

    Attributes:
        address: Its path in the folder, with `/`, or its URL.
        etag: Differs if the file may have changed.
        path: Where it can be read now.
    """

    address: str
    etag: str
    path: Path
    title: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def open(self) -> BinaryIO:
        """Open the file for reading."""
        return self.path.open("rb")


def folder_files(
    folder: Path, *, pattern: PathPattern | None = None
) -> Iterator[FoundFile | RejectedRecord]:
    """Yield the documents of a folder and its subfolders, in order of paths.

    Hidden files and files with other suffixes are left out; files named like a sidecar belong to
    their document. A link to a target outside the folder is rejected.

    Raises:
        InvalidSourceError: The folder cannot be read. Raised by the call itself.
    """
    try:
        entries = _entries(folder)
    except (OSError, ValueError) as error:
        raise _missing(folder) from error
    return _walk(folder, entries, pattern)


def _missing(folder: Path) -> InvalidSourceError:
    path = printable(str(folder))
    return InvalidSourceError(
        _(
            "The folder of documents {path} does not exist or cannot be read. Check "
            "DOCUMENTS_SOURCE."
        ).format(path=path),
        path=path,
    )


def _walk(
    folder: Path, entries: list[Path], pattern: PathPattern | None
) -> Iterator[FoundFile | RejectedRecord]:
    root = folder.resolve()
    seen = {root}
    stack = entries[::-1]
    while stack:
        path = stack.pop()
        name = path.relative_to(folder).as_posix()
        try:
            target = path.resolve()
            if not target.is_relative_to(root):
                if path.is_dir() or path.suffix.lower() in SUFFIXES:
                    yield RejectedRecord(
                        printable(name),
                        _(
                            "It is a link to another place, outside the folder, and is not read. "
                            "Copy into the folder what it links to."
                        ),
                    )
            elif path.is_dir():
                if target not in seen:
                    seen.add(target)
                    stack += _entries(path)[::-1]
            elif path.suffix.lower() in SUFFIXES or path.suffix.lower() in UNREAD:
                yield _found(path, name, pattern, root)
        except (OSError, RuntimeError):
            yield RejectedRecord(
                printable(name),
                _(
                    "It cannot be read. Check that it exists, is no broken link, and that there "
                    "is permission to read."
                ),
            )


def _entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _found(
    path: Path, name: str, pattern: PathPattern | None, root: Path
) -> FoundFile | RejectedRecord:
    if name != printable(name):
        return RejectedRecord(printable(name), _("The name is not UTF-8. Rename the file."))
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        return RejectedRecord(
            name,
            _(
                "It cannot be read. Check that it exists, is no broken link, and that there is "
                "permission to read."
            ),
        )
    try:
        own = _sidecar(path, root)
    except InvalidSourceError as error:
        return RejectedRecord(name, error.message)
    metadata = {**(pattern.values(name) if pattern else {}), **own}
    title = str(metadata.pop("title", "") or metadata.pop("título", "") or title_of(name))
    return FoundFile(name, f"{status.st_size}-{status.st_mtime_ns}", path, title, metadata)


def title_of(name: str) -> str:
    """Return a title for a file from its name or path."""
    return PurePosixPath(name).stem.replace("_", " ").strip() or name


def _sidecar(path: Path, root: Path) -> dict[str, Any]:
    """Return the metadata that lies beside a document.

    Raises:
        InvalidSourceError: It cannot be used; the message names the line or the key.
    """
    for suffix in SIDECARS:
        beside = path.with_name(path.name + suffix)
        if beside.is_file():
            if not beside.resolve().is_relative_to(root):
                raise _bad_sidecar(
                    beside,
                    _(
                        "It is a link to another place, outside the folder, and is not read. Copy "
                        "into the folder what it links to."
                    ),
                )
            return _metadata(beside)
    return {}


def _metadata(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(MAX_SIDECAR_BYTES + 1).decode("utf-8-sig")
        if len(text) > MAX_SIDECAR_BYTES:
            raise _bad_sidecar(
                path, _("they take more than {maximum} bytes.").format(maximum=MAX_SIDECAR_BYTES)
            )
        values = load_yaml(text, prepare=refuse_duplicate_keys)
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise _bad_sidecar(
            path, _("they are not valid YAML in UTF-8 (line {line}).").format(line=line)
        ) from error
    try:
        return checked_metadata(values)
    except InvalidSourceError as error:
        raise _bad_sidecar(path, error.message) from error


def _bad_sidecar(path: Path, reason: str) -> InvalidSourceError:
    return InvalidSourceError(
        _("The metadata of {name} cannot be used: {reason}").format(name=path.name, reason=reason)
    )
