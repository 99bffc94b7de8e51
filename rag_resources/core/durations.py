"""Durations and months in words."""

from collections.abc import Sequence

from rag_resources.languages.messages import Text, _, joined, ngettext

SHOWN_MONTHS = 3
_SHOWN_IN_SECONDS = 100


def duration(seconds: float) -> str:
    """Return a duration in words, rounded to a sensible unit; never empty."""
    if seconds < _SHOWN_IN_SECONDS:
        return _("{seconds} s").format(seconds=max(1, round(seconds)))
    hours, minutes = divmod(round(seconds / 60), 60)
    if not hours:
        return _("{minutes} min").format(minutes=minutes)
    if hours < 48:
        return _("{hours} h {minutes} min").format(hours=hours, minutes=minutes)
    return _("{days} d {hours} h").format(days=hours // 24, hours=hours % 24)


def months_in_words(months: Sequence[str]) -> Text:
    """Name a few months in their order; of many, how many they are and from when to when.

    Args:
        months: As `2026-11` or `2026-11-01`.
    """
    named = [month[:7] for month in months]
    if len(named) <= SHOWN_MONTHS:
        return listed(named)
    return ngettext(
        "{count} month (from {first} to {last})",
        "{count} months (from {first} to {last})",
        len(named),
    ).format(count=len(named), first=min(named), last=max(named))


def listed(items: Sequence[str]) -> Text:
    """Return items as "a, b y c"."""
    if len(items) < 2:
        return joined("", items)
    return _("{items} and {last}").format(items=joined(", ", items[:-1]), last=items[-1])
