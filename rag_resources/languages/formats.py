"""Dates and numbers as the readers of a language write them, from Unicode's CLDR by Babel.

Only what is shown to a reader is formatted here; JSON and what is stored keep plain values.
"""

from datetime import date

from babel.dates import format_date
from babel.numbers import format_decimal, format_percent


def day(moment: date, language: str) -> str:
    """Return a date, as "29 abr 2025"."""
    return format_date(moment, "medium", locale=language)


def long_day(moment: date, language: str) -> str:
    """Return a date in words, as "22 de noviembre de 2026"."""
    return format_date(moment, "long", locale=language)


def month(moment: date, language: str) -> str:
    """Return the name of a date's month, as "noviembre"."""
    return format_date(moment, "LLLL", locale=language)


def percent(value: float, language: str) -> str:
    """Return a change with its sign, as "+25 %"."""
    return format_percent(value, "+#,##0.## %;-#,##0.## %", locale=language)


def number(value: float, decimals: int, language: str) -> str:
    """Return a number with exactly these decimals, as "1.234,5"."""
    pattern = f"#,##0.{'0' * decimals}" if decimals else "#,##0"
    return format_decimal(value, pattern, locale=language)
