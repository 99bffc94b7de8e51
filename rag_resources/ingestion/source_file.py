"""A file of notes, and the error for an unusable record.

Listing the files of a source is in `sources`; reading them is in the module of each format.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from rag_resources.core.errors import InvalidInputError
from rag_resources.core.types import RejectedRecord
from rag_resources.languages.messages import _

MAX_NOTE_BYTES = 20 * 1024 * 1024

CONFLICT_MARK = re.compile(
    r"\.sync-conflict-\d{8}-\d{6}"  # Syncthing
    # Dropbox and Nextcloud
    r"|\((?:[^()]*conflicted copy|copia (?:en conflicto|conflictiva))\b[^()]*\)"
    r"|(?-i:-(?:DESKTOP|LAPTOP|PC|WIN)-[A-Z0-9]{3,}$)"  # OneDrive
    r"|_conflict-\d{8}-\d{6}",  # Nextcloud and ownCloud before
    re.IGNORECASE,
)
"""What synchronisation adds to the name of the second version of a file; its date is its own."""


def is_conflict_copy(name: str) -> bool:
    """Whether a name is that of the second version of a file, as synchronisation names it."""
    return CONFLICT_MARK.search(name.rpartition("/")[2]) is not None


class InvalidRecordError(InvalidInputError):
    """A record cannot become a note; callers of `ingestion` get a `RejectedRecord`."""

    def rejected(self, location: str) -> RejectedRecord:
        """Return the rejection of the record at this location."""
        return RejectedRecord(location=location, reason=self.message)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of notes.

    Attributes:
        path: Of the file.
        name: Its path within the source, with "/"; the file name if the file is the source.
        modified_at: In UTC.
    """

    path: Path
    name: str
    modified_at: datetime

    @classmethod
    def at(cls, path: Path, name: str) -> "SourceFile":
        """Describe the file at a path.

        Raises:
            OSError: The file does not exist.
            InvalidRecordError: Its date is outside the calendar.
        """
        try:
            modified_at = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
        except (ValueError, OverflowError) as error:
            raise InvalidRecordError(
                _(
                    "The modification date of the file is not valid. Correct it, for instance "
                    "with “touch”."
                ),
                name=name,
            ) from error
        return cls(path, name, modified_at)

    @property
    def name_without_suffix(self) -> str:
        """Its path within the source without the suffix."""
        return PurePosixPath(self.name).with_suffix("").as_posix()

    def at_line(self, line: int) -> str:
        """Return the location of one of its lines, for messages."""
        return f"{self.name}:{line}"


def too_large() -> InvalidRecordError:
    """Return the error for a note above the size limit."""
    return InvalidRecordError(
        _("The note takes more than {megabytes} MB, the maximum. Split it.").format(
            megabytes=f"{MAX_NOTE_BYTES / 1024**2:.3g}"
        )
    )
