"""Takes the metadata of a document from its path."""

import re

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.quoting import shown
from rag_resources.languages.messages import _

_FIELD = re.compile(r"\{([^{}]*)\}")
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,15})")


class PathPattern:
    """Takes metadata from paths, as `{partido}_{año}.pdf` does.

    A field matches any characters but `/`; a pattern without `/` is compared only with the file's
    name. The suffix is compared case-insensitively.

    Raises:
        InvalidParameterError: The pattern has no field, an empty one, one twice, or a brace alone.
    """

    def __init__(self, pattern: str) -> None:
        names = _FIELD.findall(pattern)
        is_wrong = not names or len(set(names)) < len(names) or not all(map(str.strip, names))
        rest = "".join(_FIELD.split(pattern)[::2])
        if is_wrong or "{" in rest or "}" in rest:
            raise InvalidParameterError(
                _(
                    "“{pattern}” must have fields in braces, each once, such as "
                    "{{party}}_{{year}}.pdf."
                ).format(pattern=shown(pattern))
            )
        self._names = names
        self._whole = "/" in pattern
        parts = [re.escape(part) for part in _FIELD.split(pattern)[::2]]
        self._expression = re.compile("([^/]+?)".join(parts), re.IGNORECASE)

    def values(self, path: str) -> dict[str, str | int]:
        """Return the fields of a path; none if it does not match. Whole numbers are numbers."""
        matched = self._expression.fullmatch(path if self._whole else path.rpartition("/")[2])
        if matched is None:
            return {}
        return {
            name.strip(): value_of(text)
            for name, text in zip(self._names, matched.groups(), strict=True)
        }


def value_of(text: str) -> str | int:
    """Return a value of metadata: whole numbers are numbers, as in filters."""
    return int(text) if _INTEGER.fullmatch(text) else text
