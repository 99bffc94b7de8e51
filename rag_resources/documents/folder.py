"""Walks folders of notes and documents, and lists documents with the metadata of their names.

Registering the found files is in `documents.arrival`; notes are read in `ingestion.sources`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from pathspec import GitIgnoreSpec

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.errors import unreadable as read_problem
from rag_resources.core.path_pattern import PathPattern
from rag_resources.core.quoting import printable
from rag_resources.core.types import RejectedRecord
from rag_resources.documents.media_types import SUFFIXES
from rag_resources.languages.messages import _, about

IGNORE_FILE = ".ragignore"


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
    """Yield the documents of a folder and its subfolders, as `walk` does.

    Raises:
        InvalidSourceError: The folder cannot be read. Raised by the call itself.
    """
    try:
        next(folder.iterdir(), None)
    except (OSError, ValueError) as error:
        path = printable(str(folder))
        raise InvalidSourceError(
            _("{path} cannot be read: check the path, the permissions and the disk.").format(
                path=path
            ),
            path=path,
        ) from error
    return (
        each if isinstance(each, RejectedRecord) else _found(*each, pattern)
        for each in walk(folder, SUFFIXES)
    )


def _found(path: Path, name: str, pattern: PathPattern | None) -> FoundFile | RejectedRecord:
    try:
        status = path.stat()
    except OSError:
        return unreadable(name)
    metadata = pattern.values(name) if pattern else {}
    title = str(metadata.pop("title", "") or metadata.pop("título", "") or title_of(name))
    return FoundFile(name, f"{status.st_size}-{status.st_mtime_ns}", path, title, metadata)


def title_of(name: str) -> str:
    """Return a title for a file from its name or path."""
    return PurePosixPath(name).stem.replace("_", " ").strip() or name


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, by its name."""
    return name.startswith(".")


def walk(
    root: Path, suffixes: Collection[str], *, leaves_out: Callable[[str], bool] = is_hidden
) -> Iterator[tuple[Path, str] | RejectedRecord]:
    """Yield the files of a folder and its subfolders, in order of names, each with its path in it.

    Links to what the walk finds anyway are skipped, and what `.ragignore` names; a link out of the
    folder is rejected.

    Args:
        root: The folder.
        suffixes: Of the files, in lower case; others are skipped.
        leaves_out: Whether a file or folder is skipped, by its name.
    """
    real_root, is_ignored = root.resolve(), ignored_by(root)
    seen = {real_root}
    stack = _entries(root, leaves_out)
    while stack:
        name = stack.pop()
        path = root / name
        try:
            if _is_redundant_link(path, real_root):
                continue
            is_folder = path.is_dir()
            if is_ignored(f"{name}/" if is_folder else name):
                continue
            if not is_folder and path.suffix.lower() not in suffixes:
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(real_root):
                yield RejectedRecord(
                    printable(name),
                    _(
                        "It is a link to another place, outside the folder, and is not read. Copy "
                        "into the folder what it links to."
                    ),
                )
            elif is_folder:
                if (target := path.resolve()) not in seen:
                    seen.add(target)
                    stack += [f"{name}/{entry}" for entry in _entries(path, leaves_out)]
            elif name != name.encode("utf-8", "replace").decode():
                yield RejectedRecord(printable(name), _("The name is not UTF-8. Rename the file."))
            else:  # Opening a pipe would wait for a writer for ever.
                yield (path, name) if path.is_file() else unreadable(name)
        except OSError:
            yield unreadable(name)


def ignored_by(root: Path) -> Callable[[str], bool]:
    """Return whether the file `.ragignore` of a folder names a path in it; a folder ends in `/`.

    Its lines are patterns as in `.gitignore`.

    Raises:
        InvalidSourceError: The file cannot be read.
    """
    path = root / IGNORE_FILE
    try:
        lines = path.read_text("utf-8").splitlines() if path.is_file() else []
        return GitIgnoreSpec.from_lines(lines).match_file
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSourceError(read_problem(path, error), path=str(path)) from error
    except ValueError as error:
        raise InvalidSourceError(about(IGNORE_FILE, str(error)), path=str(path)) from error


def unreadable(name: str) -> RejectedRecord:
    """Return the rejection of a file that cannot be read."""
    return RejectedRecord(
        printable(name),
        _(
            "It cannot be read. Check that it exists, is no broken link, and "
            "that there is permission to read."
        ),
    )


def _entries(folder: Path, leaves_out: Callable[[str], bool]) -> list[str]:
    """Return the entries of a folder, the last one first."""
    names = (path.name for path in folder.iterdir())
    return sorted((name for name in names if not leaves_out(name)), reverse=True)


def _is_redundant_link(path: Path, real_root: Path) -> bool:
    """Whether a link leads to a file that the walk finds anyway, or forms a loop.

    A link to something hidden is not redundant: mounted configuration and git-annex use such links.
    """
    if not path.is_symlink():
        return False
    try:
        target = path.resolve()
    except RuntimeError:
        return True
    if target == real_root:
        return True
    if not target.is_relative_to(real_root):
        return False
    parts = target.relative_to(real_root).parts
    return target.exists() and not any(part.startswith(".") for part in parts)
