"""Texts that keep their message code and the values filled into it.

A text is a string in Spanish, so it can be shown as it is. `languages.messages.render` renders it
in another language. `to_stored` stores the code and the values, never the sentence. The codes are
in `core.messages`, the wording is in `languages`.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from string import Formatter
from typing import Any


class MessageFormatter(Formatter):
    """Fills in templates like `str.format`, and chooses between singular and plural.

    "{count:# nota|# notas}" is what stands before the bar for 1, else what stands after it; "#" is
    the number, as in ICU's MessageFormat.
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        """Format one value."""
        if "|" in format_spec:
            one, other = format_spec.split("|")
            return (one if value == 1 else other).replace("#", str(value))
        return str(super().format_field(value, format_spec))


_FORMATTER = MessageFormatter()

JOINED = "JOINED"
"""The code of several joined texts; its values are `separator` and `items`."""


class Text(str):
    """A sentence for a person.

    Attributes:
        code: Code of the message; the same in all languages.
        values: The values filled in, by placeholder. A value may be a text itself.
    """

    code: str
    values: Mapping[str, Any]

    def __new__(cls, sentence: str, code: str, values: Mapping[str, Any] | None = None) -> "Text":
        """Make a text. `Template.format` makes messages; `joined` joins several."""
        text = super().__new__(cls, sentence)
        text.code = code
        text.values = dict(values or {})
        return text

    def __add__(self, other: str) -> "Text":
        """Append a text; both keep their codes."""
        return joined("", (self, other))

    def __getnewargs__(self) -> tuple[str, str, Mapping[str, Any]]:  # type: ignore[override]
        return str(self), self.code, self.values


class Template(Text):
    """A message of the catalogue; without placeholders it is a complete text itself."""

    def format(self, *args: object, **values: object) -> Text:
        """Fill in the placeholders, by name."""
        return Text(_FORMATTER.vformat(self, args, values), self.code, values)


def joined(separator: str, texts: Iterable[str]) -> Text:
    """Join texts so that each keeps its code; like `str.join`."""
    items = tuple(texts)
    return Text(separator.join(items), JOINED, {"separator": separator, "items": items})


def reworded(text: str, wording: Mapping[str, str], formatter: Formatter = _FORMATTER) -> str:
    """Render a text with another wording.

    Args:
        text: Returned unchanged if it is an ordinary string, or its code has no wording.
        wording: Templates by code. They are also used for texts among the values.
        formatter: Fills in the templates.
    """
    if not isinstance(text, Text):
        return text
    values = {
        name: _reworded_value(value, wording, formatter) for name, value in text.values.items()
    }
    if text.code == JOINED:
        return str(values["separator"]).join(values["items"])
    if text.code not in wording:
        return str(text)
    template = wording[text.code]
    return template if isinstance(text, Template) else formatter.vformat(template, (), values)


def _reworded_value(value: Any, wording: Mapping[str, str], formatter: Formatter) -> Any:
    if isinstance(value, str):
        return reworded(value, wording, formatter)
    if isinstance(value, list | tuple):
        return type(value)(_reworded_value(item, wording, formatter) for item in value)
    return value


# --- What is stored ---------------------------------------------------------------------------


MAX_VALUE_CHARS = 1_000
"""Longest string that is stored as a value; the rest is cut off."""


def to_stored(text: str) -> dict[str, Any]:
    """Return the stored form of a text: `code` and `values`, or `text` for an ordinary string.

    It is JSON that PostgreSQL accepts, without NUL and lone surrogates. `from_stored` reads it.
    """
    if isinstance(text, Text):
        return {
            "code": text.code,
            "values": {name: _to_json(value) for name, value in text.values.items()},
        }
    return {"text": _storable(text)}


def from_stored(stored: Mapping[str, Any], wording: Mapping[str, str]) -> str:
    """Return a stored text in the current wording.

    Args:
        stored: A result of `to_stored`.
        wording: Templates by code. A code without a template, or whose placeholders have changed,
            is shown with its values.
    """
    if "text" in stored:
        return str(stored["text"])
    code = stored["code"]
    values = {name: _from_json(value, wording) for name, value in stored["values"].items()}
    if code == JOINED:
        return joined(values["separator"], values["items"])
    try:
        return Text(_FORMATTER.vformat(wording[code], (), values), code, values)
    except (KeyError, ValueError, TypeError):
        told = ", ".join(f"{name}: {value}" for name, value in values.items())
        return Text(f"{code} ({told})" if told else code, code, values)


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


def _from_json(value: Any, wording: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return tuple(_from_json(item, wording) for item in value)
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "datetime" in value:
        return datetime.fromisoformat(value["datetime"])
    return from_stored(value, wording)


def _storable(text: str) -> str:
    return text[:MAX_VALUE_CHARS].replace("\0", "\ufffd").encode("utf-8", "replace").decode()
