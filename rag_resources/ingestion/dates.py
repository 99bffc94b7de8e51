"""Finds the date of a note where its fields state none: names, folders, text, git, the file.

Dates that fields state are parsed by `core.timestamps`, and `records` reads the fields.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from rag_resources.core.timestamps import parse_timestamp
from rag_resources.core.types import DateSource
from rag_resources.ingestion.source_file import CONFLICT_MARK, SourceFile

_MONTHS = {
    name: number
    for names, number in (
        (("enero", "ene", "january", "jan"), 1),
        (("febrero", "feb", "february"), 2),
        (("marzo", "mar", "march"), 3),
        (("abril", "abr", "april", "apr"), 4),
        (("mayo", "may"), 5),
        (("junio", "jun", "june"), 6),
        (("julio", "jul", "july"), 7),
        (("agosto", "ago", "august", "aug"), 8),
        (("septiembre", "setiembre", "sep", "sept", "september"), 9),
        (("octubre", "oct", "october"), 10),
        (("noviembre", "nov", "november"), 11),
        (("diciembre", "dic", "december", "dec"), 12),
    )
    for name in names
}
_MONTH = rf"(?P<name>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})(?![^\W\d_])\.?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_NUMBER = r"(?P<month>0?[1-9]|1[0-2])"
_BETWEEN = r"[\s_.,-]+(?:de[l]?[\s_]+)?"
_DATES = [
    re.compile(rf"(?<!\d){pattern}(?!\d)", re.IGNORECASE)
    for pattern in (
        rf"{_YEAR}(?P<mark>[-_./ ]){_NUMBER}(?P=mark){_DAY}",
        rf"{_DAY}(?P<mark>[-_./ ]){_NUMBER}(?P=mark){_YEAR}",
        r"(?P<year>20\d\d)(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])(?:T?\d{4}(?:\d\d)?)?",
        rf"{_DAY}{_BETWEEN}{_MONTH}{_BETWEEN}{_YEAR}",
        rf"(?<![^\W\d_]){_MONTH}[\s_.]+{_DAY}(?:st|nd|rd|th)?,?[\s_]+{_YEAR}",
        rf"{_YEAR}{_BETWEEN}{_MONTH}{_BETWEEN}{_DAY}",
        rf"{_DAY}/{_NUMBER}/(?P<short>\d\d),?\s\d{{1,2}}[:.]\d\d",  # of a chat's message
        rf"{_YEAR}-?W(?P<week>0[1-9]|[1-4]\d|5[0-3])",
    )
]
_YEAR_FOLDER = re.compile(rf"{_YEAR}(?:[-_. ]{_NUMBER}(?!\d).*)?")
_MONTH_FOLDER = re.compile(
    rf"(?:(?:19|20)\d\d[-_. ])?(?:{_NUMBER}(?!\d).*|(?:\d\d?\W+)?{_MONTH}.*)", re.IGNORECASE
)
_DAY_NAME = re.compile(rf"{_DAY}(?!\d)")
_LINKS = re.compile(r"\[\[|\]\]|\|.*")
_IDENTIFIER = re.compile(r"[0-9a-f-]{16,}", re.IGNORECASE)
_GIT_SECONDS = 60


def date_in(text: str) -> datetime | None:
    """Return the first date of a text, in any usual spelling, at midnight UTC."""
    found = [match for pattern in _DATES for match in pattern.finditer(text)]
    for match in sorted(found, key=lambda own: (own.start(), -own.end())):
        if dated := _dated(match.groupdict()):
            return dated
    return None


def without_date(text: str) -> str:
    """Return a text without a date at its start."""
    for pattern in _DATES:
        if (match := pattern.match(text)) and _dated(match.groupdict()):
            return text[match.end() :]
    return text


def stated_date(value: Any) -> datetime | None:
    """Return the date that a field states: a text, a link to a day's note, a list or a mapping."""
    if isinstance(value, str):
        text = _LINKS.sub("", value).strip()
        if parsed := parse_timestamp(text):
            return parsed
        return date_in(text) if any(pattern.match(text) for pattern in _DATES) else None
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, Sequence):
        return next((dated for own in value if (dated := stated_date(own))), None)
    return None


def found_date(
    external_id: str, title: str, text: str, file: SourceFile
) -> tuple[datetime, DateSource]:
    """Return the date of a note whose fields state none, and where it is from.

    Of the text, the first line is looked at.
    """
    names = [
        CONFLICT_MARK.sub("", own)
        for own in (external_id.rpartition("/")[2], PurePosixPath(file.name).stem)
    ]
    first = next((line for line in text.splitlines() if line.strip()), "")
    places: list[tuple[DateSource, datetime | None]] = [
        *(("file_name", date_in(own)) for own in names if not _IDENTIFIER.fullmatch(own)),
        ("title", date_in(title)),
        ("folder", _in_folders(file.name)),
        ("text", date_in(first)),
    ]
    for origin, dated in places:
        if dated:
            return dated, origin
    folder = file.path.absolute().parents[file.name.count("/")]
    stores = (parent / ".git" for parent in (folder, *folder.resolve().parents))
    store = next((own for own in stores if own.exists()), None)
    commits = _first_commits(folder, store.stat().st_mtime_ns) if store else {}
    if committed := commits.get(file.name):
        return committed, "git"
    return file.modified_at, "file_modified"


def _in_folders(name: str) -> datetime | None:
    """Return the date that folders such as `2026/03/10` or `2026/03-marzo` say."""
    folder, _, file = name.rpartition("/")
    if dated := date_in(folder):
        return dated
    folders = folder.split("/")
    years = (place for place, part in enumerate(folders) if _YEAR_FOLDER.fullmatch(part))
    if (place := next(years, -1)) < 0 or not (year := _YEAR_FOLDER.fullmatch(folders[place])):
        return None
    parts = iter([*folders[place + 1 :], file.rpartition(".")[0] or file])
    month = year if year["month"] else _MONTH_FOLDER.fullmatch(next(parts, ""))
    if month is None:
        return None
    day = _DAY_NAME.match(next(parts, ""))
    said = {**month.groupdict(), "year": year["year"], "day": day["day"] if day else "1"}
    return _dated(said) or _dated({**said, "day": "1"})


def _dated(parts: Mapping[str, str | None]) -> datetime | None:
    with suppress(ValueError):
        year = int(parts.get("year") or f"20{parts['short']}")
        if week := parts.get("week"):
            return datetime.fromisocalendar(year, int(week), 1).replace(tzinfo=UTC)
        name = parts.get("name")
        month = _MONTHS[name.lower()] if name else int(parts["month"] or 0)
        return datetime(year, month, int(parts["day"] or 0), tzinfo=UTC)
    return None


@lru_cache(maxsize=4)
def _first_commits(folder: Path, _changed: int) -> Mapping[str, datetime]:
    """Return when each file of a folder was first committed; empty if git does not know."""
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "log"]
    options = ["--reverse", "--format=%x00%aI", "--name-status", "-M", "--diff-filter=AR"]
    try:
        told = subprocess.run(  # noqa: S603
            [*command, *options, "--no-show-signature", "--relative", "--", "."],
            cwd=folder,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=True,
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        return {}
    first: dict[str, datetime] = {}
    for commit in told.split("\0")[1:]:
        moment, _, lines = commit.partition("\n")
        for line in lines.splitlines():
            status, *names = line.split("\t")
            if names and (dated := parse_timestamp(moment)):
                before = first.get(names[0], dated) if status.startswith("R") else dated
                first.setdefault(names[-1], before)
    return first
