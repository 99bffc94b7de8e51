"""The limits of a tenant, and whether more notes or bytes still fit."""

from dataclasses import dataclass

from rag_resources.core.messages import Message

MEGABYTE = 1024**2


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of a tenant; None means no limit.

    Attributes:
        notes: Most notes.
        size_bytes: Most bytes of its notes' texts (UTF-8) and its documents' files together.
        questions_a_minute: Most questions over HTTP per minute.
        upload_hours: Lifetime of its uploads in hours, unless an upload states its own.
    """

    notes: int | None = None
    size_bytes: int | None = None
    questions_a_minute: int | None = None
    upload_hours: int | None = None

    @property
    def limits_contents(self) -> bool:
        """Whether it limits the number or the size of notes."""
        return self.notes is not None or self.size_bytes is not None


@dataclass(frozen=True, slots=True)
class Usage:
    """The number of a tenant's notes, and the size of them and of its documents' files."""

    notes: int
    size_bytes: int


class Account:
    """Counts additions to a tenant's usage against its quota.

    Args:
        tenant: Its name, for messages.
        quota: Its limits.
        usage: Its usage before the additions.
    """

    def __init__(self, tenant: str, quota: Quota, usage: Usage) -> None:
        self._tenant = tenant
        self._quota = quota
        self.usage = usage

    def add(self, *, notes: int = 0, size_bytes: int = 0) -> str | None:
        """Add notes and bytes, or say why they do not fit; negative numbers take away.

        A change that adds nothing always fits, so a tenant over its quota can reduce its usage.
        """
        problem = self._problem(notes, size_bytes)
        if problem is None:
            self.usage = Usage(self.usage.notes + notes, self.usage.size_bytes + size_bytes)
        return problem

    def _problem(self, notes: int, size_bytes: int) -> str | None:
        quota, usage = self._quota, self.usage
        if notes > 0 and quota.notes is not None and usage.notes + notes > quota.notes:
            return Message.QUOTA_NOTES.format(tenant=self._tenant, most=quota.notes)
        limit = quota.size_bytes
        if size_bytes > 0 and limit is not None and usage.size_bytes + size_bytes > limit:
            return Message.QUOTA_SIZE.format(tenant=self._tenant, most=limit / MEGABYTE)
        return None
