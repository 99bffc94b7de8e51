"""A file of notes and how to read it, and the error of a record that cannot become a note.

Which files a source has belongs to `sources`; what is in them to the module of each kind.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from rag_resources.core.errors import InvalidInputError, InvalidParameterError
from rag_resources.core.messages import Message
from rag_resources.core.types import RejectedRecord

MAX_NOTE_BYTES = 20 * 1024 * 1024


class InvalidRecordError(InvalidInputError):
    """A record cannot become a note; `ingestion` gives it to others as a `RejectedRecord`."""

    def rejected(self, location: str) -> RejectedRecord:
        """Say where it was."""
        return RejectedRecord(location=location, reason=self.message)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How to read a source.

    Args:
        paragraphs_per_note: Consecutive paragraphs of a SQuAD article that make a note, >= 1.
        max_note_bytes: A larger note is rejected, >= 1.
        follows_links: Whether links that lead out of the folder are read.

    Raises:
        InvalidParameterError: A value is out of range.
    """

    paragraphs_per_note: int = 1
    max_note_bytes: int = MAX_NOTE_BYTES
    follows_links: bool = False

    def __post_init__(self) -> None:
        for name in ("paragraphs_per_note", "max_note_bytes"):
            require_at_least(1, name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of notes.

    Attributes:
        path: Where it is.
        name: Its path within the source, with "/"; its file name if it is the source.
        is_source: Whether it is the source itself, not a file of a folder.
        modified_at: In UTC.
    """

    path: Path
    name: str
    is_source: bool
    modified_at: datetime

    @classmethod
    def at(cls, path: Path, name: str, *, is_source: bool = False) -> "SourceFile":
        """Describe the file at a path.

        Raises:
            OSError: It is not there.
            InvalidRecordError: It has a name that is not text, or a date outside the calendar.
        """
        if name != name.encode("utf-8", "replace").decode():
            raise InvalidRecordError(Message.RECORD_FILE_NAME, name=name)
        try:
            modified_at = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
        except (ValueError, OverflowError) as error:
            raise InvalidRecordError(Message.RECORD_FILE_DATE, name=name) from error
        return cls(path, name, is_source, modified_at)

    @property
    def name_without_suffix(self) -> str:
        """Its path within the source without the suffix."""
        return PurePosixPath(self.name).with_suffix("").as_posix()

    def at_line(self, line: int) -> str:
        """Name one of its lines."""
        return f"{self.name}:{line}"


def require_at_least(minimum: int, name: str, value: int) -> None:
    """Raise `InvalidParameterError` if a parameter is under its minimum."""
    if value < minimum:
        raise InvalidParameterError(
            Message.SOURCE_PARAMETER.format(name=name, minimum=minimum, value=value),
            **{name: value},
        )


def too_large(max_bytes: int) -> InvalidRecordError:
    """Return the error of a note over the limit."""
    megabytes = f"{max_bytes / 1024**2:.3g}"
    return InvalidRecordError(
        Message.RECORD_TOO_LARGE.format(megabytes=megabytes), max_bytes=max_bytes
    )
