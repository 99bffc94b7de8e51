"""What a tenant may have and ask, and whether something more still fits."""

from dataclasses import dataclass

from rag_resources.core.messages import Message

MEGABYTE = 1024**2


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of a tenant; None where there is none.

    Attributes:
        notes: At most so many.
        size_bytes: Of the texts of its notes, in UTF-8, and the files of its documents together.
        questions_a_minute: Over HTTP.
        upload_hours: How long its uploads live, in hours, if they do not say it themselves.
    """

    notes: int | None = None
    size_bytes: int | None = None
    questions_a_minute: int | None = None
    upload_hours: int | None = None

    @property
    def limits_contents(self) -> bool:
        """Whether it says how much the tenant may have."""
        return self.notes is not None or self.size_bytes is not None


@dataclass(frozen=True, slots=True)
class Usage:
    """How many notes a tenant has, and how large they and the files of its documents are."""

    notes: int
    size_bytes: int


class Account:
    """Counts what is added to what a tenant has.

    Args:
        tenant: Its name, for messages.
        quota: Its limits.
        usage: What it has already.
    """

    def __init__(self, tenant: str, quota: Quota, usage: Usage) -> None:
        self._tenant = tenant
        self._quota = quota
        self.usage = usage

    def add(self, *, notes: int = 0, size_bytes: int = 0) -> str | None:
        """Add notes and bytes, or say why they do not fit; negative numbers take away.

        What adds nothing always fits, so that whoever has too much can have less.
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
