"""Reads a folder or file of notes as a stream of records.

Each file format is read by `markdown`, `row_files` or `exports`; records are stored by `ingest`.
"""

import os
import stat
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.quoting import printable, shown
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.ingestion.exports import read_eml, read_enex, read_mbox
from rag_resources.ingestion.markdown import read_markdown
from rag_resources.ingestion.row_files import read_csv, read_jsonl
from rag_resources.ingestion.source_file import (
    InvalidRecordError,
    SourceFile,
)
from rag_resources.languages.messages import _

ARCHIVE = ".zip"
MAX_ARCHIVE_BYTES = 2 * 1024**3
"""Most bytes that an archive may unpack to."""
_TEMPLATES = {"plantillas", "templates"}

Reader = Callable[[SourceFile], Iterator[NoteRecord | RejectedRecord]]

READERS: dict[str, Reader] = {
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".txt": read_markdown,
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".csv": read_csv,
    ".eml": read_eml,
    ".mbox": read_mbox,
    ".enex": read_enex,
}
"""The reader of each suffix, in lower case."""


def iter_source(path: Path) -> Iterator[NoteRecord | RejectedRecord]:
    """Read the notes of one file, or of a folder with its subfolders.

    Folders are walked in order of names. Hidden files, templates, files of other formats, and links
    to files that the walk finds anyway are skipped. A link to a target outside the folder is
    rejected. A bad record or file is yielded as a rejection and reading continues. If two records
    have the same external id, the second is rejected.

    Args:
        path: The folder or file.

    Returns:
        A stream; only the current record and the ids seen are in memory.

    Raises:
        InvalidSourceError: The path does not exist, cannot be read, or is a file of an unknown
            format. Raised by the call itself, not by the stream.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            return _without_duplicates(_read_folder(path, _entries(path)))
        if stat.S_ISREG(mode) and (_reader(path) or path.suffix.lower() == ARCHIVE):
            path.open("rb").close()
            return _without_duplicates(_read_file(path, path.name))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _invalid_source(
            _("The folder or file of notes {path} does not exist. Check the spelling of the path."),
            path,
        ) from error
    except (OSError, ValueError) as error:
        raise _invalid_source(
            _(
                "{path} cannot be read. Check the path and give permission to read, and to enter "
                "if it is a folder."
            ),
            path,
        ) from error
    raise _invalid_source(
        _(
            "Notes cannot be read from {path}. Give a folder or a file of one of these types: "
            "{suffixes}."
        ),
        path,
    )


def _invalid_source(message: str, path: Path) -> InvalidSourceError:
    text = message.format(path=printable(str(path)), suffixes=" ".join(READERS))
    return InvalidSourceError(text, path=str(path))


def _reader(path: Path) -> Reader | None:
    return READERS.get(path.suffix.lower())


def _without_duplicates(
    records: Iterator[NoteRecord | RejectedRecord],
) -> Iterator[NoteRecord | RejectedRecord]:
    first_seen: dict[str, str] = {}
    for record in records:
        if isinstance(record, RejectedRecord):
            yield record
        elif record.external_id in first_seen:
            reason = _("id: “{external_id}” is already in {first}. Change one of the two.").format(
                external_id=shown(record.external_id), first=first_seen[record.external_id]
            )
            yield RejectedRecord(record.location, reason)
        else:
            first_seen[record.external_id] = record.location
            yield record


def _read_folder(root: Path, names: list[str]) -> Iterator[NoteRecord | RejectedRecord]:
    """Read the files of a folder, without recursion because folders may be nested very deeply."""
    real_root = root.resolve()
    folders_seen = {_identity(root)}
    stack = names[::-1]
    while stack:
        name = stack.pop()
        path = root / name
        try:
            if _is_redundant_link(path, real_root):
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(real_root):
                if path.is_dir() or _reader(path):
                    yield RejectedRecord(
                        printable(name),
                        _(
                            "It is a link to another place, outside the folder, and is not read. "
                            "Copy into the folder what it links to."
                        ),
                    )
                continue
            if not path.is_dir():
                yield from _read_file(path, name)
            elif (identity := _identity(path)) not in folders_seen:
                folders_seen.add(identity)
                stack.extend(f"{name}/{entry}" for entry in reversed(_entries(path)))
        except OSError:
            yield _unreadable(name)


def _read_archive(path: Path, name: str) -> Iterator[NoteRecord | RejectedRecord]:
    """Read the notes of an export in a ZIP archive as those of a folder."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        if problem := _unpacked(path, root):
            yield RejectedRecord(printable(name), problem)
        else:
            yield from _read_folder(root, _entries(root))


def _unpacked(path: Path, folder: Path) -> str:
    """Unpack an archive; return why that cannot be done, empty if it is."""
    try:
        with ZipFile(path) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MAX_ARCHIVE_BYTES:
                return _("The archive is too large. Unpack it.")
            for member in members:
                unpacked = archive.extract(member, folder)
                moment = datetime(*member.date_time, tzinfo=UTC).timestamp()
                os.utime(unpacked, (moment, moment))
    except (BadZipFile, zlib.error, EOFError, LookupError, OSError, RuntimeError, ValueError):
        return _("The archive is damaged or has a password.")
    return ""


def _entries(folder: Path) -> list[str]:
    """Return the entries of a folder in order, without hidden ones and templates."""
    return sorted(path.name for path in folder.iterdir() if not is_left_out(path.name))


def is_left_out(name: str) -> bool:
    """Whether a file or folder is hidden, or a folder of templates, by its name."""
    return name.startswith(".") or name.casefold().strip("_ ") in _TEMPLATES


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino


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


def _read_file(path: Path, name: str) -> Iterator[NoteRecord | RejectedRecord]:
    if path.suffix.lower() == ARCHIVE:
        yield from _read_archive(path, name)
        return
    reader = _reader(path)
    if reader is None:
        return
    try:
        file = SourceFile.at(path, name)
        # Opening a pipe would wait for a writer for ever.
        if path.is_file():
            yield from reader(file)
        else:
            yield _unreadable(name)
    except InvalidRecordError as error:
        yield error.rejected(printable(name))
    except OSError:
        yield _unreadable(name)


def _unreadable(name: str) -> RejectedRecord:
    return RejectedRecord(
        printable(name),
        _(
            "It cannot be read. Check that it exists, is no broken link, and that there is "
            "permission to read."
        ),
    )
