"""Writes the values of a workbook's cells as its number formats show them, in Spanish.

The decimal mark is a comma, thousands are not grouped, and dates are ISO 8601, so that numbers and
dates can be read back from the text without guessing.
"""

import math
import re
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal

GENERAL = "General"

_LITERALS = re.compile(r'"[^"]*"|\\.|_.|\*.')
_BRACKETS = re.compile(r"\[(?!h+\]|m+\]|s+\])[^\]]*\]", re.IGNORECASE)
_CURRENCY = re.compile(r"\[\$([^\]-]*)[^\]]*\]")
_DIGITS = re.compile(r"[0#?][0#?,.]*")
_SIGNIFICANT_DIGITS = 15
_WHOLE_DAYS_FROM = 60
_LARGEST_SERIAL = 2_958_466
_PLAIN_BELOW = 1e21


def is_date_format(code: str) -> bool:
    """Whether a number format shows dates or times."""
    bare = _BRACKETS.sub("", _LITERALS.sub("", code.split(";", maxsplit=1)[0]))
    return code.lower() != GENERAL.lower() and bool(re.search(r"[ymdhs]", bare, re.IGNORECASE))


def formatted(value: float, code: str = GENERAL, *, from_1904: bool = False) -> str:
    """Return a number of a cell as text: `1234,50 €`, `12,5 %`, `2024-03-01`.

    Args:
        value: The stored number.
        code: Its number format.
        from_1904: Whether the workbook counts days from 1904.
    """
    if not math.isfinite(value):
        return str(value)
    if is_date_format(code):
        return _date(value, code, from_1904=from_1904) or plain_number(value)
    section = code.split(";", maxsplit=1)[0]
    section = _CURRENCY.sub(lambda found: f'"{found[1]}"', section)
    section = _BRACKETS.sub("", section)
    bare = _LITERALS.sub("", section)
    placeholders = _DIGITS.search(bare)
    if not placeholders or re.search(r"[eE][+-]|/", bare):
        return plain_number(value)
    percent = "%" in bare
    digits = _rounded(value * (100 if percent else 1), placeholders[0])
    before, after = _literals(section)
    return f"{before}{digits}{' %' if percent else ''}{after}"


def plain_number(value: float) -> str:
    """Return a number as text without a format: at most 15 digits, with a decimal comma."""
    if abs(value) >= _PLAIN_BELOW:
        return f"{value:.15g}".replace(".", ",")
    number = Decimal(f"{value:.{_SIGNIFICANT_DIGITS}g}")
    text = f"{number:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace(".", ",")


def day_text(value: date | datetime | time | timedelta) -> str:
    """Return a date or time as text: `2024-03-01`, `2024-03-01 14:30`, `14:30`, `26:30`."""
    if isinstance(value, timedelta):
        seconds = round(value.total_seconds())
        sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
        hours = f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}"
        return f"{hours}:{seconds % 60:02}" if seconds % 60 else hours
    if isinstance(value, datetime):
        if value.time() == time():
            return value.date().isoformat()
        return f"{value.date().isoformat()} {day_text(value.time())}"
    if isinstance(value, time):
        return value.strftime("%H:%M:%S" if value.second else "%H:%M")
    return value.isoformat()


def _rounded(value: float, placeholders: str) -> str:
    # The shortest text of a float is what was typed; its binary value may round the other way.
    number = Decimal(f"{value:.{_SIGNIFICANT_DIGITS}g}")
    if placeholders.endswith(","):  # Shown in thousands: the stored value is more exact.
        return plain_number(value)
    decimals = placeholders.partition(".")[2].replace(",", "")
    if abs(number.adjusted()) > _SIGNIFICANT_DIGITS:
        return plain_number(value)
    text = f"{number.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP):f}"
    # A code such as 08001 is a number whose format asks for five digits.
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole = placeholders.partition(".")[0].count("0")
    text = sign + text.zfill(whole + (1 + len(decimals) if decimals else 0))
    for placeholder in reversed(decimals):
        if placeholder == "0" or not text.endswith("0"):
            break
        text = text[:-1]
    text = text.rstrip(".") if text.strip("-0.") else text.rstrip(".").lstrip("-")
    return text.replace(".", ",")


def _literals(section: str) -> tuple[str, str]:
    """Return the text of a format before and after the digits, such as a currency."""
    shown = _LITERALS.sub(_shown_literal, section).replace("%", "")
    found = _DIGITS.search(shown)
    if not found:
        return "", ""
    before, after = shown[: found.start()].strip(), shown[found.end() :].strip()
    return (f"{before} " if before else ""), (f" {after}" if after else "")


def _shown_literal(found: re.Match[str]) -> str:
    literal = found[0]
    if literal.startswith('"'):
        return re.sub(r"[0#?]", "", literal[1:-1])
    return literal[1] if literal.startswith("\\") and literal[1] not in "0#?" else " "


def _date(value: float, code: str, *, from_1904: bool) -> str | None:
    if not 0 <= value < _LARGEST_SERIAL:
        return None
    bare = _BRACKETS.sub("", _LITERALS.sub("", code.split(";", maxsplit=1)[0])).lower()
    if "[" in bare:
        return day_text(timedelta(days=value))
    # Excel treats 1900 as a leap year: before 1 March 1900, days count from one day later.
    epoch = datetime(1904, 1, 1) if from_1904 else datetime(1899, 12, 30)  # noqa: DTZ001 - cells have no zone
    if not from_1904 and 1 <= value < _WHOLE_DAYS_FROM:
        epoch += timedelta(days=1)
    moment = epoch + timedelta(seconds=round(value * 86_400))
    has_time = bool(re.search("[hs]", bare))
    if not re.search("[yd]", bare) and has_time:
        return day_text(moment.time())
    return day_text(moment if has_time else moment.date())
