"""Writes the prompts about a question and passages, which are data and cannot be instructions.

A passage is told with its title, place, date and trend.

The instructions themselves are in `languages/*/prompts`.
"""

import re
from collections.abc import Sequence
from datetime import date
from itertools import groupby

from rag_resources.core.places import Place
from rag_resources.core.quotation import SourcePassage
from rag_resources.core.temporal_context import Change
from rag_resources.core.types import RetrievalResult
from rag_resources.languages.formats import day, long_day, month, percent
from rag_resources.languages.messages import _, render
from rag_resources.prompts import Prompt
from rag_resources.providers.inputs import as_data, clean

PROMPT_FORM = "form-2"
"""Change this whenever the same question and passages give another prompt."""

_SHOWN_CHANGES = 3
_TITLE_CHARS = 120
_BRACKETS = str.maketrans("[]", "()")
# A line of a note that begins like the line that says where the passage is from.
_FORGED = re.compile(r"^(\s*)\[", re.MULTILINE)


def answer_prompt(
    question: str,
    passages: Sequence[SourcePassage],
    instructions: Prompt,
    *,
    today: date,
    language: str,
) -> str:
    """Return the prompt of an answer: the date, the question, the passages, and what to do."""
    parts = [
        render(_("CURRENT DATE: {date}").format(date=long_day(today, language)), language),
        question_as_data(question),
        *(_passage(number, own, language) for number, own in enumerate(passages, start=1)),
        instructions.task,
    ]
    return "\n".join(parts)


def question_as_data(question: str) -> str:
    """Return a question as it is written in a prompt."""
    return f"<pregunta>\n{as_data(question)}\n</pregunta>"


def passages_as_data(passages: Sequence[str]) -> str:
    """Return passages as written in a prompt, numbered from 1."""
    return "\n".join(_element(number, text) for number, text in enumerate(passages, start=1))


def _passage(number: int, passage: SourcePassage, language: str) -> str:
    text = _FORGED.sub(r"\1(", passage.text)
    if not passage.origin:
        return _element(number, text)
    origin = " ".join(passage.origin.split()).translate(_BRACKETS)
    told = render(
        _("Source {number}: {origin}").format(number=number, origin=clean(origin)), language
    )
    return _element(number, f"[{told}]\n{text}")


def _element(number: int, text: str) -> str:
    return f'<pasaje n="{number}">\n{as_data(text)}\n</pasaje>'


def origin_of(result: RetrievalResult, language: str) -> str:
    """Return where a passage is from, on one line in the answer's language.

    Such as "ventas.xlsx, hoja Ventas, celda C12, fecha: 15 dic 2025, tendencia: +25 % frente a
    noviembre".
    """
    title = result.document.document if result.document else result.title
    parts = [" ".join(title.split())[:_TITLE_CHARS]]
    if result.place:
        parts += [
            render(_place(each), language) for each in result.place.places if not each.is_whole
        ]
    changes = _latest(result.document.changes) if result.document else []
    moment = max(own.reading.day for own in changes) if changes else result.created_at
    if moment:
        date = day(moment, language)
        parts.append(render(_("date: {date}").format(date=date), language))
    if changes:
        told = "; ".join(_trend(change, language, named=len(changes) > 1) for change in changes)
        parts.append(render(_("trend: {trend}").format(trend=told), language))
    return ", ".join(filter(None, parts))


def _place(place: Place) -> str:
    if place.sheet is None:
        return _("p. {page}").format(page=place.page)
    first, last = place.cells[0], place.cells[-1]
    if first == last:
        return _("sheet {sheet}, cell {cell}").format(sheet=place.sheet, cell=first)
    return _("sheet {sheet}, cells {first} to {last}").format(
        sheet=place.sheet, first=first, last=last
    )


def _latest(changes: tuple[Change, ...]) -> list[Change]:
    """Return the last known change of each column, of three columns at most."""
    known = [own for own in changes if own.change is not None]
    known.sort(key=lambda own: (own.column, own.reading.day))
    by_column = groupby(known, key=lambda own: own.column)
    return [list(own)[-1] for _, own in by_column][:_SHOWN_CHANGES]


def _trend(change: Change, language: str, *, named: bool) -> str:
    assert change.change is not None
    assert change.previous is not None
    before, now = change.previous.day, change.reading.day
    follows = (now.year - before.year) * 12 + now.month - before.month
    period = month(before, language) if 0 < follows < 12 else day(before, language)
    told = _("{change} against {period}").format(
        change=percent(float(change.change), language), period=period
    )
    trend = render(told, language)
    return f"{change.column} {trend}" if named else trend
