"""Checks the metadata of documents that a person gave."""

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.quoting import shown
from rag_resources.core.timestamps import EXPIRES_AT_FIELDS, parse_timestamp
from rag_resources.languages.messages import _

MAX_KEYS = 100
MAX_VALUE_CHARS = 1_000


def checked_metadata(values: Any) -> dict[str, Any]:
    """Return metadata with values that JSON and filters support; dates become text.

    `expiresAt` is when the document expires.

    Raises:
        InvalidSourceError: They are not a mapping, are too many, or a value has another type.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping) or len(values) > MAX_KEYS:
        raise InvalidSourceError(
            _(
                "must be lines of the form “field: value” (in JSON an object), {maximum} at most."
            ).format(maximum=MAX_KEYS)
        )
    plain = {str(key): _plain(str(key), value) for key, value in values.items()}
    for name in EXPIRES_AT_FIELDS:
        if (value := plain.pop(name, None)) is not None:
            plain["expiresAt"] = _moment(name, value)
    return plain


def has_expired(metadata: Mapping[str, Any]) -> bool:
    """Whether the document with these checked metadata has expired."""
    expires_at = metadata.get("expiresAt")
    return expires_at is not None and datetime.fromisoformat(expires_at) <= datetime.now(UTC)


def _moment(key: str, value: Any) -> str:
    moment = parse_timestamp(value) if isinstance(value, str) else None
    if moment is None:
        raise InvalidSourceError(
            _(
                "{field}: “{value}” is not a date. Write it like this: 2025-03-14 or "
                "2025-03-14T18:30:00+01:00."
            ).format(field=key, value=shown(value))
        )
    return moment.isoformat()


def _plain(key: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(key, each) for each in value[:MAX_KEYS]]
    if isinstance(value, str) and len(value) <= MAX_VALUE_CHARS and "\0" not in value:
        return value
    if isinstance(value, date):
        return value.isoformat()
    is_number = isinstance(value, int | float) and math.isfinite(value)
    if value is None or (is_number and abs(value) < 2**63):
        return value
    raise InvalidSourceError(
        _("“{key}” must be a text, a number, a date, yes or no, or a list of them.").format(
            key=shown(key)
        )
    )
