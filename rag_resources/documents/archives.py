"""Opens office files, which are ZIP archives of XML, and refuses malicious ones."""

import resource
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import IO, BinaryIO
from xml.etree import ElementTree
from xml.parsers import expat

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.quoting import shown
from rag_resources.languages.messages import _

MAX_BYTES = 1024**3
"""Most bytes that an archive may unpack to in a process without a memory limit."""
MAX_ENTRIES = 10_000
MAX_LEVELS = 400
_ENCRYPTED_FLAG = 1
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError),
    *(ElementTree.ParseError, expat.ExpatError),
)
"""What a damaged archive or its XML raises."""


@contextmanager
def archive_of(file: BinaryIO, kind: str) -> Iterator[zipfile.ZipFile]:
    """Open a ZIP archive.

    Args:
        file: Seekable.
        kind: What it should be, for messages, such as `DOCX`.

    Raises:
        InvalidSourceError: It is damaged, encrypted or too large, or a part's name leads outside
            the archive. It may be raised while the caller reads the archive.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            _check(archive, kind)
            yield archive
    except (*BROKEN, KeyError, StopIteration) as error:
        raise damaged(kind, error) from error
    except RuntimeError as error:  # A part that needs a password.
        raise protected() from error


def damaged(kind: str, error: Exception) -> InvalidSourceError:
    """Return the error for a file that cannot be read because of another error."""
    reason = shown(str(error) or type(error).__name__)
    return InvalidSourceError(
        _(
            "It cannot be read as {kind}: it is damaged or of another type. Open it with its "
            "program and save it again, or ask for another copy."
        ).format(kind=kind, reason=reason)
    )


def protected() -> InvalidSourceError:
    """Return the error for a file with a password."""
    return InvalidSourceError(_("The file is protected by a password. Save a copy without it."))


def too_deep(levels: int) -> InvalidSourceError:
    """Return the error for a file whose elements are nested too deeply."""
    return InvalidSourceError(
        _("It has elements inside others more than {levels} deep, the maximum.").format(
            levels=levels
        )
    )


def _check(archive: zipfile.ZipFile, kind: str) -> None:
    parts = archive.infolist()
    most = _most_bytes()
    if len(parts) > MAX_ENTRIES or sum(part.file_size for part in parts) > most:
        raise InvalidSourceError(
            _(
                "The file would take more than {megabytes} MB uncompressed or has more than "
                "{entries} parts. If that is expected, raise EXTRACTION__MEMORY_MB or split it."
            ).format(megabytes=most // 1024**2, entries=MAX_ENTRIES)
        )
    for part in parts:
        path = PurePosixPath(part.filename.replace("\\", "/"))
        if ".." in path.parts or path.is_absolute():
            raise InvalidSourceError(
                _(
                    "The part “{part}” has a name that is not allowed, with “..” or an absolute "
                    "path. The file is not read."
                ).format(part=shown(part.filename))
            )
        if part.flag_bits & _ENCRYPTED_FLAG:
            raise protected()


def _most_bytes() -> int:
    """The memory limit of this process, which the parent of a reader sets; see `child`."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return MAX_BYTES if limit == resource.RLIM_INFINITY else limit


def check_parts(archive: zipfile.ZipFile) -> None:
    """Read every part once, to check that none is larger than it states, and no XML has a DTD.

    Parsers of the parts have no such limits.
    """
    for part in archive.infolist():
        if part.filename.lower().endswith((".xml", ".rels")):
            # A reader decides whether a damaged part matters.
            with suppress(expat.ExpatError), archive.open(part) as stream:
                _check_xml(stream, part.filename)
        with archive.open(part) as stream:
            while stream.read(1 << 20):
                pass


def _check_xml(stream: IO[bytes], name: str) -> None:
    parser = expat.ParserCreate()
    depth = 0

    def forbid(*__: object) -> None:
        raise InvalidSourceError(
            _(
                "The part {part} declares a DTD or entities, which are not read. Save the file "
                "again with an office program."
            ).format(part=shown(name))
        )

    def opened(*__: object) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_LEVELS:
            raise too_deep(MAX_LEVELS)

    def closed(__: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = forbid
    parser.StartElementHandler = opened
    parser.EndElementHandler = closed
    parser.ParseFile(stream)


def tree_of(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    """Parse a part of an archive whose parts were checked."""
    return ElementTree.fromstring(archive.read(name))  # noqa: S314 - no part has a DTD
