"""The periods that a question names: dates, months, seasons, "last week", ranges of them.

The expressions are data in `languages/*/rules/questions.toml`; here is what each kind means. What
is not understood names no period. Days begin in the reader's time zone.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from rag_resources.core.rules import question_rules, word_rules

MADRID = ZoneInfo("Europe/Madrid")

_UNITS = ("day", "week", "month", "quarter", "half", "year")
_SEASONS = ((3, 21), (6, 21), (9, 23), (12, 21))
_DAY = timedelta(days=1)
_MONTHS = {"month": 1, "quarter": 3, "half": 6, "year": 12}


@dataclass(frozen=True, slots=True)
class Period:
    """A time that a question names.

    Attributes:
        text: As the question names it, in small letters without accents.
        start: Inclusive; None: from the beginning.
        end: Exclusive; None: until now.
    """

    text: str
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True)
class _Named:
    """A period as it stands in a question; `core` is where it begins without a preposition."""

    kind: str
    groups: Mapping[str, str]
    at: tuple[int, int]
    core: int


def periods(line: str, language: str, today: date, zone: ZoneInfo = MADRID) -> tuple[Period, ...]:
    """Return the periods that a question names, in order.

    Args:
        line: The question, folded, with single spaces.
        language: Of the question.
        today: The reader's date.
        zone: The reader's time zone.
    """
    words = _words(language)
    found: list[Period] = []
    named = list(_named(line, words))
    while named:
        first = named.pop(0)
        begin = first.at[0]
        before = words.opening.search(line[: first.core])
        ends = [first.at[1]]
        span = _range(first, words, today)
        if before and named and words.joint.fullmatch(line[ends[0] : named[0].core]):
            last = named.pop(0)
            given = last.groups.get("year")
            until = _range(last, words, today)
            if given and not first.groups.get("year") and until:
                span = _range(first, words, until[1] - _DAY) or span
            ends.append(last.at[1])
            span = (span[0], until[1]) if span and until and span[0] < until[1] else None
            begin = min(begin, before.start())
        elif first.kind.startswith("weak_"):
            continue
        if span is None:
            continue
        start: date | None = span[0]
        end: date | None = span[1]
        side = None if len(ends) > 1 else words.side.search(line[: first.core])
        if side:
            begin = min(begin, side.start())
            start, end = {
                "since": (span[0], None),
                "after": (span[1], None),
                "until": (None, span[1]),
                "before": (None, span[0]),
            }[str(side.lastgroup)]
        found.append(
            Period(line[begin : ends[-1]].strip(), _midnight(start, zone), _midnight(end, zone))
        )
    return tuple(found)


def _midnight(day: date | None, zone: ZoneInfo) -> datetime | None:
    return datetime(day.year, day.month, day.day, tzinfo=zone) if day else None


@dataclass(frozen=True, slots=True)
class _Words:
    patterns: Sequence[tuple[str, re.Pattern[str]]]
    opening: re.Pattern[str]
    joint: re.Pattern[str]
    side: re.Pattern[str]
    lists: Mapping[str, Sequence[str]]
    numbers: Mapping[str, int]


@cache
def _words(language: str) -> _Words:
    rules = question_rules(language).reading
    lists = {name: rules.get(name, []) for name in _LISTS}
    counted = enumerate(word_rules(language).numbers.split(), start=2)
    numbers = {word: number for number, word in counted} | dict.fromkeys(rules.get("one", []), 1)
    filled = {name: "|".join(own) for name, own in lists.items()}
    filled["n"] = "|".join([r"\d{1,3}", *numbers])

    def compiled(text: str) -> re.Pattern[str]:
        for name, own in filled.items():
            text = text.replace(f"{{{name}}}", f"(?:{own})")
        return re.compile(rf"\b{text}(?![\w])")

    kinds = [kind for kind in rules if kind.removeprefix("weak_") in _MEANINGS]
    never = re.compile(r"(?!)")
    return _Words(
        [(kind, compiled(own)) for kind in kinds for own in rules[kind]],
        re.compile(rules["opening"][0]) if "opening" in rules else never,
        re.compile(rules["joint"][0]) if "joint" in rules else never,
        re.compile(rules["side"][0]) if "side" in rules else never,
        lists,
        numbers,
    )


def _named(line: str, words: _Words) -> Iterator[_Named]:
    """Yield what names a period, in order; of expressions that overlap the longest."""
    found = [
        _Named(
            kind,
            {name: own for name, own in match.groupdict().items() if own is not None},
            match.span(),
            match.end("lead") if match.groupdict().get("lead") else match.start(),
        )
        for kind, pattern in words.patterns
        for match in pattern.finditer(line)
    ]
    kept: list[_Named] = []
    for own in sorted(found, key=lambda own: (own.core - own.at[1], own.kind.startswith("weak_"))):
        if all(own.at[1] <= other.core or other.at[1] <= own.core for other in kept):
            kept.append(own)
    yield from sorted(kept, key=lambda own: own.at)


Range = tuple[date, date]


def _range(named: _Named, words: _Words, today: date) -> Range | None:
    meaning = _MEANINGS[named.kind.removeprefix("weak_")]
    try:
        return meaning(_Groups(named.groups, words), today)
    except (ValueError, OverflowError):  # As of the 31st of February.
        return None


@dataclass(frozen=True, slots=True)
class _Groups:
    """The parts of an expression, as values."""

    groups: Mapping[str, str]
    words: _Words

    def number(self, name: str, default: int = 1) -> int:
        text = self.groups.get(name)
        if text is None:
            return default
        return int(text) if text.isdigit() else self.words.numbers[text]

    def place(self, name: str) -> int:
        """Return the place of a word in the list of that name."""
        patterns = self.words.lists[f"{name}s"]
        return next(at for at, own in enumerate(patterns) if re.fullmatch(own, self.groups[name]))

    def year(self) -> int | None:
        text = self.groups.get("year")
        return int(text) if text else None

    @property
    def month(self) -> int:
        return int(self.groups["number"]) if "number" in self.groups else self.place("month") + 1


def _unit(unit: str, day: date) -> Range:
    """Return the calendar day, week, month, quarter, half or year of a day."""
    if unit == "day":
        return day, day + _DAY
    if unit == "week":
        monday = day - day.weekday() * _DAY
        return monday, monday + timedelta(weeks=1)
    months = _MONTHS[unit]
    start = date(day.year, (day.month - 1) // months * months + 1, 1)
    return start, _months_later(start, months)


def _months_later(day: date, months: int) -> date:
    """Return the same day of another month, or its last one."""
    years, month = divmod(day.month - 1 + months, 12)
    year = day.year + years
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _earlier(unit: str, count: int, day: date) -> date:
    """Return the day some units before a day."""
    if unit in _MONTHS:
        return _months_later(day, -count * _MONTHS[unit])
    return day - count * timedelta(days=7 if unit == "week" else 1)


def _latest(made: Callable[[int], Range], year: int | None, today: date) -> Range:
    """Return the range in a year, or in the latest one in which it has begun."""
    if year is not None:
        return made(year)
    this = made(today.year)
    return this if this[0] <= today else made(today.year - 1)


def _date(own: _Groups, today: date) -> Range:
    day = own.number("day")
    return _latest(lambda year: _unit("day", date(year, own.month, day)), own.year(), today)


def _days(own: _Groups, today: date) -> Range:
    first, last = own.number("day"), own.number("last")
    return _latest(
        lambda year: (date(year, own.month, first), date(year, own.month, last) + _DAY),
        own.year(),
        today,
    )


def _month(own: _Groups, today: date) -> Range:
    return _latest(lambda year: _unit("month", date(year, own.month, 1)), own.year(), today)


def _part(own: _Groups, today: date) -> Range:
    months = 3 if own.groups["part"].startswith("tri") else 6
    place = own.place("nth")
    month = (12 // months - 1 if place == len(own.words.lists["nths"]) - 1 else place) * months + 1
    year = own.year() or (today.year - 1 if "past" in own.groups else None)
    return _latest(
        lambda year: (
            date(year, month, 1),
            date(year, month + months - 1, monthrange(year, month + months - 1)[1]) + _DAY,
        ),
        year,
        today,
    )


def _season(own: _Groups, today: date) -> Range:
    place = own.place("season")

    def made(year: int) -> Range:
        """Winter is that which ends in the year."""
        start = date(year - (place == len(_SEASONS) - 1), *_SEASONS[place])
        return start, _months_later(start, 3)

    year = own.year()
    if year is None and made(today.year + 1)[0] <= today:
        year = today.year + 1
    found = _latest(made, year, today)
    is_present = found[0] <= today < found[1]
    return _latest(made, found[1].year - 1, today) if "past" in own.groups and is_present else found


def _weekday(own: _Groups, today: date) -> Range:
    back = (today.weekday() - own.place("weekday")) % 7
    return _unit("day", today - timedelta(days=back or 7 * ("past" in own.groups)))


def _weekend(own: _Groups, today: date) -> Range:
    monday = _unit("week", today)[0]
    saturday = monday + timedelta(days=5)
    if "past" in own.groups or saturday > today:
        saturday -= timedelta(weeks=1)
    return saturday, saturday + 2 * _DAY


def _recent(own: _Groups, today: date) -> Range:
    unit = _UNITS[own.place("unit")]
    return _earlier(unit, own.number("n"), today) + _DAY, today + _DAY


_LISTS = ("months", "units", "days", "nths", "seasons", "weekdays")
_MEANINGS: Mapping[str, Callable[[_Groups, date], Range]] = {
    "date": _date,
    "dates": _days,
    "month": _month,
    "year": lambda own, today: _unit("year", date(own.year() or today.year, 1, 1)),
    "near": lambda own, today: _unit("day", today - own.place("day") * _DAY),
    "this": lambda own, today: _unit(_UNITS[own.place("unit")], today),
    "last": lambda own, today: _unit(
        _UNITS[own.place("unit")], _earlier(_UNITS[own.place("unit")], 1, today)
    ),
    "ago": lambda own, today: _unit(
        _UNITS[own.place("unit")], _earlier(_UNITS[own.place("unit")], own.number("n"), today)
    ),
    "recent": _recent,
    "part": _part,
    "season": _season,
    "weekday": _weekday,
    "weekend": _weekend,
}
