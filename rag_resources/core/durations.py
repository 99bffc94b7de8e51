"""Durations in words."""

from rag_resources.core.messages import Message

_SHOWN_IN_SECONDS = 100


def duration(seconds: float) -> str:
    """Return a duration in words, rounded to a sensible unit; never empty."""
    if seconds < _SHOWN_IN_SECONDS:
        return Message.DURATION_SECONDS.format(seconds=max(1, round(seconds)))
    hours, minutes = divmod(round(seconds / 60), 60)
    if not hours:
        return Message.DURATION_MINUTES.format(minutes=minutes)
    if hours < 48:
        return Message.DURATION_HOURS.format(hours=hours, minutes=minutes)
    return Message.DURATION_DAYS.format(days=hours // 24, hours=hours % 24)
