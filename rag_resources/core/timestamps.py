"""Parses the dates that fields state, in the usual spellings.

Dates in names and texts are found by `ingestion.dates`.
"""

import re
from datetime import UTC, datetime

EXPIRES_AT_FIELDS = ("expires_at", "expiresAt", "caduca")
"""The fields of a note or document that say when it expires."""

# Unambiguous dates only, year first. YAML and people also write one-digit months and hours, and a
# space before the offset, which `datetime.fromisoformat` does not accept.
_TIMESTAMP = re.compile(
    r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})"
    r"(?:(?:t|[ \t]+)(?P<hour>\d{1,2}):(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?P<fraction>[.,]\d+)?)?"
    r"[ \t]*(?P<zone>z|utc|gmt|[+-]\d{1,2}(?::?\d{2})?)?)?",
    re.ASCII | re.IGNORECASE,
)
_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d{2})?", re.ASCII)


def parse_timestamp(value: str) -> datetime | None:
    """Parse an ISO 8601 date, or date and time, in its usual spellings.

    Returns:
        The time in UTC; without an offset it is taken as UTC, and a date as its midnight. None if
        the text is neither, or names a time that does not exist.
    """
    text = value.strip()
    match = _TIMESTAMP.fullmatch(text)
    try:
        parsed = datetime.fromisoformat(_canonical(match) if match else text)
        return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _canonical(match: re.Match[str]) -> str:
    day = f"{match['year']}-{int(match['month']):02}-{int(match['day']):02}"
    if match["hour"] is None:
        return day
    time = f"{int(match['hour']):02}:{match['minute']}:{match['second'] or '00'}"
    fraction = (match["fraction"] or "").replace(",", ".")
    return f"{day}T{time}{fraction}{_canonical_offset(match['zone'] or '')}"


def _canonical_offset(zone: str) -> str:
    offset = _OFFSET.fullmatch(zone)
    if offset is None:
        return "+00:00"
    return f"{offset[1]}{int(offset[2]):02}:{offset[3] or '00'}"
