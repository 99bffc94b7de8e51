"""What people read: English sentences in the code, and their translations in `*/messages.po`.

`_("The port {port} is taken.").format(port=5432)` is a string in the operators' language that keeps
its English sentence and its values: `render` tells it in a reader's language, and `to_stored` keeps
it without its wording. Logs are English and are not translated. `make messages` updates the files.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from rag_resources.languages.files import LANGUAGES, text

OPERATORS = ("es", "en")
"""The languages that operators may choose: English and those with every message."""

MAX_VALUE_CHARS = 1_000
"""Longest string that is stored as a value; the rest is cut off."""


class Text(str):
    """A sentence for a person.

    Attributes:
        msgid: The sentence in English, with its placeholders; empty for several joined texts.
        values: The values filled in, by placeholder. A value may be a text itself.
        plural: The sentence in English for other counts than 1; None if there is only one.
        number: What chooses between the two.
    """

    msgid: str
    values: Mapping[str, Any]
    plural: str | None
    number: int

    def __new__(
        cls,
        sentence: str,
        msgid: str,
        values: Mapping[str, Any] | None = None,
        plural: str | None = None,
        number: int = 1,
    ) -> "Text":
        """Make a text. `_` and `ngettext` make sentences; `joined` joins several."""
        made = super().__new__(cls, sentence)
        made.msgid, made.values = msgid, dict(values or {})
        made.plural, made.number = plural, number
        return made

    def format(self, *args: object, **values: object) -> "Text":
        """Fill in the placeholders, by name."""
        return Text(super().format(*args, **values), self.msgid, values, self.plural, self.number)

    def __add__(self, other: str) -> "Text":
        """Append a text; both can still be rendered."""
        return joined("", (self, other))

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.msgid, self.values, self.plural, self.number


def _(msgid: str) -> Text:
    """Return a sentence in the operators' language."""
    return _own(msgid, None, 1)


def ngettext(msgid: str, plural: str, count: int) -> Text:
    """Return one of two sentences in the operators' language: for 1, or for another count."""
    return _own(msgid, plural, count)


def _own(msgid: str, plural: str | None, number: int) -> Text:
    told = _translated(operators(), msgid, plural, number)
    return Text(told or _translated("en", msgid, plural, number) or "", msgid, None, plural, number)


def joined(separator: str, texts: Iterable[str]) -> Text:
    """Join texts so that each can still be rendered; like `str.join`."""
    items = tuple(texts)
    return Text(separator.join(items), "", {"separator": separator, "items": items})


def about(field: str, problem: str) -> Text:
    """Say what is wrong with a field, as every list of problems does."""
    return joined(": ", (field, problem))


def render(said: str, language: str) -> str:
    """Render a text in a language; if it lacks the sentence, in the operators'.

    Args:
        said: A `Text`; an ordinary string is returned as it is.
        language: One of `LANGUAGES`, also with a region, as `fr-CA`; the operators' for any other.
    """
    base = language.replace("_", "-").split("-")[0].lower()
    return _rendered(said, base) if base in LANGUAGES else str(said)


def _rendered(said: Any, language: str) -> Any:
    if isinstance(said, list | tuple):
        return type(said)(_rendered(item, language) for item in said)
    if not isinstance(said, Text):
        return said
    values = {name: _rendered(value, language) for name, value in said.values.items()}
    if not said.msgid:
        return str(values["separator"]).join(values["items"])
    template = _translated(language, said.msgid, said.plural, said.number)
    if template is None:
        return str(said)
    return _ReaderFormatter(language).vformat(template, (), values) if values else template


class _ReaderFormatter(Formatter):
    """Writes numbers whose decimals the sentence gives, as "{score:.3f}", as in the language."""

    def __init__(self, language: str) -> None:
        self._language = language

    def format_field(self, value: Any, format_spec: str) -> str:
        if decimals := re.fullmatch(r"\.(\d+)f", format_spec):
            from rag_resources.languages.formats import number  # Most processes need no Babel.

            return number(value, int(decimals[1]), self._language)
        return str(super().format_field(value, format_spec))


# --- Languages --------------------------------------------------------------------------------


@cache
def operators() -> str:
    """Return the language that `RAG_LANG` names; Spanish if it names none of these languages.

    It is read here, from the environment or `.env`, because messages are needed before settings
    are; `settings` refuses any other value.
    """
    wanted = os.environ.get("RAG_LANG", "")
    if not wanted and Path(".env").is_file():
        from rag_resources.env_file import present_values  # Most processes need no parser.

        wanted = present_values().get("RAG_LANG") or ""
    return wanted if wanted in OPERATORS else OPERATORS[0]


def readers(asked: str | None, default: str) -> str:
    """Return the language of what is said of a question to an operator who asks it.

    Args:
        asked: The language that the call names; None or empty if it names none.
        default: The language in which questions are read otherwise. An operator who has chosen
            another language than the first one reads in it all the same.
    """
    own = operators()
    return asked or (own if own != OPERATORS[0] else default)


@cache
def catalogue(language: str) -> Mapping[str, tuple[str, ...]]:
    """Return the translations of a language by their English sentence, the singular first.

    The file is read as it is: a compiled form would have to be built for every checkout.
    """
    entries: list[tuple[list[str], list[list[str]]]] = []
    lines: list[str] = []
    for line in text(language, "messages.po").splitlines() if language != "en" else ():
        keyword, _quote, string = line.partition('"')
        if keyword == "msgid ":
            lines = []
            entries.append((lines, []))
        elif keyword.startswith("msgstr"):
            lines = []
            entries[-1][1].append(lines)
        elif keyword:  # The English plural, or a comment.
            lines = []
        lines.append(string[:-1])
    found = {_unescaped(msgid): tuple(map(_unescaped, forms)) for msgid, forms in entries}
    return {msgid: forms for msgid, forms in found.items() if all(forms)}


def _unescaped(lines: list[str]) -> str:
    return re.sub(r"\\(.)", lambda sign: "\n" if sign[1] == "n" else sign[1], "".join(lines))


def _translated(language: str, msgid: str, plural: str | None, count: int) -> str | None:
    """Return the sentence for a count; None if the language lacks it."""
    forms = catalogue(language).get(msgid)
    if language == "en":
        forms = (msgid, plural or msgid)
    if forms is None:
        return None
    is_one = count < 2 if language == "fr" else count == 1
    return forms[0] if is_one or plural is None else forms[-1]


# --- What is stored ---------------------------------------------------------------------------


def to_stored(said: str) -> dict[str, Any]:
    """Return the stored form: the English `message` and its `values`, or `text` for a plain string.

    It is JSON that PostgreSQL accepts, without NUL and lone surrogates. `restored` reads it.
    """
    if not isinstance(said, Text):
        return {"text": _storable(said)}
    values = {name: _to_json(value) for name, value in said.values.items()}
    counted = {} if said.plural is None else {"plural": said.plural, "number": said.number}
    return {"message": said.msgid, **counted, "values": values}


def restored(stored: Mapping[str, Any]) -> str:
    """Return a stored text in the operators' language; `render` accepts it."""
    if "text" in stored:
        return str(stored["text"])
    values = {name: _from_json(value) for name, value in stored["values"].items()}
    if not stored["message"]:
        return joined(values["separator"], values["items"])
    own = _own(stored["message"], stored.get("plural"), stored.get("number", 1))
    return own.format(**values) if values else own


def _to_json(value: Any) -> Any:
    if isinstance(value, Text):
        return to_stored(value)
    if isinstance(value, bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    return _storable(str(value))


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_from_json(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "datetime" in value:
        return datetime.fromisoformat(value["datetime"])
    return restored(value)


def _storable(said: str) -> str:
    return said[:MAX_VALUE_CHARS].replace("\0", "\ufffd").encode("utf-8", "replace").decode()
