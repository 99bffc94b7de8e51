"""Writes the prompts about a question and passages; both are data, and cannot be instructions.

The instructions themselves are in `languages/*/prompts`.
"""

import re
from collections.abc import Sequence
from datetime import date

from rag_resources.core.messages import Message
from rag_resources.core.quotation import SourcePassage
from rag_resources.languages.formats import long_day
from rag_resources.languages.messages import render
from rag_resources.languages.prompts import Prompt
from rag_resources.providers.inputs import as_data, clean

PROMPT_FORM = "form-2"
"""Change this whenever the same question and passages give another prompt."""

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
        render(Message.PROMPT_TODAY.format(date=long_day(today, language)), language),
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
    told = render(Message.PROMPT_SOURCE.format(number=number, origin=clean(origin)), language)
    return _element(number, f"[{told}]\n{text}")


def _element(number: int, text: str) -> str:
    return f'<pasaje n="{number}">\n{as_data(text)}\n</pasaje>'
