"""The fields of a record, as JSON values that PostgreSQL can store.

The meaning of each field is decided in `records`.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from rag_resources.core.quoting import shown
from rag_resources.ingestion.source_file import InvalidRecordError
from rag_resources.languages.messages import _

# A field deeper or larger than this is a mistake, or YAML aliases that expand endlessly.
MAX_DEPTH = 40
MAX_VALUES = 10_000
MAX_INTEGER_BITS = 4096


class FieldValues:
    """The fields of a record as JSON values, taken one at a time.

    Dates become ISO 8601 texts, sets sorted lists, NaN and infinity null. NUL characters are
    removed.

    Attributes:
        remaining: The fields that were not taken yet.
        nul_characters: Number of NUL characters removed.

    Raises:
        InvalidRecordError: A value has no JSON form; the message names the field.
    """

    def __init__(self, fields: Mapping[Any, Any]) -> None:
        self.nul_characters = 0
        self.remaining: dict[str, Any] = {}
        self._values_read = 0
        for key, value in fields.items():
            name = self._clean(_key_text(key), shown(_key_text(key)))
            self._values_read = 0
            self.remaining[name] = self._json(value, shown(name), depth=0)

    def take(self, names: Iterable[str]) -> tuple[str, Any]:
        """Take the first of these fields that has a value; the others remain.

        Returns:
            The field's name and value; or the first name and None if no field has a value.
        """
        names = tuple(names)
        wanted = [folded_name(name) for name in names]
        found = [name for name in self.remaining if folded_name(name) in wanted]
        found.sort(key=lambda name: (wanted.index(folded_name(name)), name not in names))
        for name in found:
            if self.remaining[name] is None:
                del self.remaining[name]
        name = next((own for own in found if own in self.remaining), names[0])
        return name, self.remaining.pop(name, None)

    def _clean(self, text: str, field: str) -> str:
        cleaned = clean_text(text, field=field)
        self.nul_characters += len(text) - len(cleaned)
        return cleaned

    def _json(self, value: Any, field: str, *, depth: int) -> Any:
        self._values_read += 1
        if depth > MAX_DEPTH or self._values_read > MAX_VALUES:
            raise InvalidRecordError(
                _("{field}: has too many values or is too deep.").format(field=field), field=field
            )
        if isinstance(value, str):
            return self._clean(value, field)
        if isinstance(value, Mapping):
            return {
                self._clean(_key_text(key), field): self._json(item, field, depth=depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, set):
            value = sorted(value, key=_key_text)
        if isinstance(value, list | tuple):
            return [self._json(item, field, depth=depth + 1) for item in value]
        return _json_scalar(value, field)


def folded_name(name: str) -> str:
    """Return the name of a field as names are compared: `Fecha de Creación` is `fecha_creacion`."""
    letters = unicodedata.normalize("NFD", name.casefold())
    words = re.findall(
        r"[^\W_]+", "".join(own for own in letters if not unicodedata.combining(own))
    )
    return "".join(word for word in words if word != "de")


def clean_text(text: str, *, field: str) -> str:
    """Return a text without NUL characters.

    Raises:
        InvalidRecordError: The text has a lone surrogate, which UTF-8 cannot encode.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = f"U+{ord(text[error.start]):04X}"
        raise InvalidRecordError(
            _("{field}: contains half a character ({code}), which is not valid Unicode.").format(
                field=field, code=code
            ),
            field=field,
        ) from error
    return text.replace("\0", "")


def _json_scalar(value: Any, field: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        # JSON has no NaN and no infinity; tables write NaN for a missing value.
        return value if math.isfinite(value) else None
    if isinstance(value, int) and value.bit_length() <= MAX_INTEGER_BITS:
        return value
    if isinstance(value, date):
        return value.isoformat()
    kind = type(value).__name__
    raise InvalidRecordError(
        _("{field}: a value of type {value} cannot be stored.").format(field=field, value=kind),
        field=field,
    )


def _key_text(key: Any) -> str:
    if isinstance(key, int) and key.bit_length() > MAX_INTEGER_BITS:
        raise InvalidRecordError(
            _("{field}: a value of type {value} cannot be stored.").format(field="…", value="int")
        )
    return key.isoformat() if isinstance(key, date) else str(key)
