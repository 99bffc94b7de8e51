"""Reads a folder or file of notes as a stream of records.

Each file format is read by `markdown`, `row_files` or `exports`; records are stored by `ingest`.
"""

import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.quoting import printable, shown
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.documents.folder import is_hidden, unreadable, walk
from rag_resources.ingestion.exports import read_eml, read_enex, read_html, read_mbox
from rag_resources.ingestion.markdown import read_markdown
from rag_resources.ingestion.row_files import read_csv, read_jsonl
from rag_resources.ingestion.source_file import (
    InvalidRecordError,
    SourceFile,
)
from rag_resources.languages.messages import _

ARCHIVES = (".zip", ".jex")
"""Exports of a program in one file: a folder in ZIP, and in TAR that of Joplin."""
_CHAT = "_chat.txt"
"""The file of every chat in WhatsApp's archives of iPhones."""
MAX_ARCHIVE_BYTES = 2 * 1024**3
"""Most bytes that an archive may unpack to."""
_DAMAGED = (BadZipFile, tarfile.TarError, zlib.error, EOFError, LookupError)
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
    ".html": read_html,
    ".htm": read_html,
}
"""The reader of each suffix, in lower case."""
READERS_AND_ARCHIVES = frozenset({*READERS, *ARCHIVES})


def iter_source(path: Path) -> Iterator[NoteRecord | RejectedRecord]:
    """Read the notes of one file, or of a folder with its subfolders.

    Hidden files, templates and files of other formats are skipped. A bad record or file is yielded
    as a rejection and reading continues. If two records have the same external id, the second is
    rejected.

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
            next(path.iterdir(), None)
            return _without_duplicates(_read_folder(path))
        if stat.S_ISREG(mode) and path.suffix.lower() in READERS_AND_ARCHIVES:
            path.open("rb").close()
            return _without_duplicates(_read_file(path, path.name))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise _invalid_source(
            _("There is no {path}. Check how it is spelt."),
            path,
        ) from error
    except (OSError, ValueError) as error:
        raise _invalid_source(
            _("{path} cannot be read: check the path, the permissions and the disk."),
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


def _read_folder(root: Path) -> Iterator[NoteRecord | RejectedRecord]:
    for each in walk(root, READERS_AND_ARCHIVES, leaves_out=is_left_out):
        if isinstance(each, RejectedRecord):
            yield each
        else:
            yield from _read_file(*each)


def _read_archive(path: Path, name: str) -> Iterator[NoteRecord | RejectedRecord]:
    """Read the notes of an export in an archive as those of a folder; a chat has its name."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        chat = root / _CHAT
        if problem := _unpacked(path, root):
            yield RejectedRecord(printable(name), problem)
        elif chat.is_file():
            yield from _read_file(chat, f"{name.removesuffix(path.suffix)}{chat.suffix}")
        else:
            yield from _read_folder(root)


def _unpacked(path: Path, folder: Path) -> str:
    """Unpack an archive; return why that cannot be done, empty if it is."""
    try:
        if path.suffix.lower() == ".jex":
            with tarfile.open(path) as tar:
                if sum(member.size for member in tar) > MAX_ARCHIVE_BYTES:
                    return _("The archive is too large. Unpack it.")
                tar.extractall(folder, filter="data")
            return ""
        with ZipFile(path) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MAX_ARCHIVE_BYTES:
                return _("The archive is too large. Unpack it.")
            for member in members:
                unpacked = archive.extract(member, folder)
                moment = datetime(*member.date_time, tzinfo=UTC).timestamp()
                os.utime(unpacked, (moment, moment))
    except (*_DAMAGED, OSError, RuntimeError, ValueError):
        return _("The archive is damaged or has a password.")
    return ""


def is_left_out(name: str) -> bool:
    """Whether a file or folder is hidden, or a folder of templates, by its name."""
    return is_hidden(name) or is_template(name)


def is_template(name: str) -> bool:
    """Whether a folder has templates of notes, by its name."""
    return name.casefold().strip("_ ") in _TEMPLATES


def _read_file(path: Path, name: str) -> Iterator[NoteRecord | RejectedRecord]:
    if path.suffix.lower() in ARCHIVES:
        yield from _read_archive(path, name)
        return
    try:
        yield from READERS[path.suffix.lower()](SourceFile.at(path, name))
    except InvalidRecordError as error:
        yield error.rejected(printable(name))
    except OSError:
        yield unreadable(name)
