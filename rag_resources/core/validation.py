"""Translates pydantic's validation errors to Spanish, each with the dotted path of its field."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rag_resources.core.errors import InvalidConfigurationError, UnwritableTextError
from rag_resources.core.quoting import shown
from rag_resources.core.yaml_text import Lines
from rag_resources.languages.messages import Text, _, about

ModelT = TypeVar("ModelT", bound=BaseModel)


def validated(model: type[ModelT], raw: Any, origin: str, lines: Lines | None = None) -> ModelT:
    """Validate the content of a file or a request as a pydantic model.

    Args:
        model: The model class.
        raw: The content.
        origin: Where it comes from, for the message.
        lines: Of the file, if it is one; each problem is then told with its line.

    Raises:
        InvalidConfigurationError: It is invalid; every problem is named by its path.
    """
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise InvalidConfigurationError(
            _("{origin} is not valid; nothing was changed:").format(origin=origin),
            describe_problems(error, model, lines),
            origin=origin,
        ) from error
    except RecursionError as error:  # The wrong value of a choice is written out by Python's enum.
        raise InvalidConfigurationError(
            _("{origin} is not valid; nothing was changed:").format(origin=origin),
            [_("a value has too many levels")],
            origin=origin,
        ) from error


MOST_LISTED_KEYS = 20
"""Keys of a place that are listed if an unknown one stands there that is like none of them."""


def describe_problems(
    error: ValidationError, model: type[BaseModel] | None = None, lines: Lines | None = None
) -> list[str]:
    """Return every problem that pydantic found, in Spanish, with the dotted path of its field.

    Args:
        error: The errors that pydantic found.
        model: The validated model; with it, the known names are listed beside an unknown one.
        lines: Of the file that was validated, if it is one; with them, each problem begins with
            its line.
    """
    found = error.errors(include_url=False)
    if lines:
        found = sorted(found, key=lambda detail: lines.of(detail["loc"]) or 0)
    return [_on_line(detail, describe_problem(detail, model), lines) for detail in found]


def _on_line(detail: ErrorDetails, problem: str, lines: Lines | None) -> str:
    line = lines.of(detail["loc"]) if lines else None
    return (
        problem if line is None else _("line {line}: {problem}").format(line=line, problem=problem)
    )


_UNWRITABLE = re.compile("[\\x00\\ud800-\\udfff]")


def check_writable(given: Mapping[str, Any]) -> None:
    """Refuse texts with a NUL or half a surrogate pair, at any depth, keys included.

    Raises:
        UnwritableTextError: There is one; its field is named.
    """
    left: list[tuple[str, Any]] = [*given.items(), *((name, name) for name in given)]
    while left:
        name, value = left.pop()
        if isinstance(value, str) and _UNWRITABLE.search(value):
            raise UnwritableTextError(
                about(
                    shown(name),
                    _("has a character that cannot be stored (NUL or half a character)"),
                )
            )
        if isinstance(value, Mapping):
            left += [(name, each) for pair in value.items() for each in pair]
        elif isinstance(value, list | tuple):
            left += [(name, each) for each in value]


def describe_problem(detail: ErrorDetails, model: type[BaseModel] | None = None) -> str:
    """Return one problem that pydantic found; see `describe_problems`."""
    # If a key itself is invalid, pydantic adds the step "[key]".
    steps = [shown(step) for step in detail["loc"] if step != "[key]"]
    path = ".".join(steps) or "."
    return about(path, _reason(detail, model))


def _reason(detail: ErrorDetails, model: type[BaseModel] | None) -> str:
    context = dict(detail.get("ctx", {}))
    if "expected" in context:  # pydantic lists the choices in English
        context["expected"] = _choices(context["expected"])
    template = _PROBLEMS.get(detail["type"])
    if detail["type"] == "value_error":
        reason: str = context["error"].args[0]  # as a text, which `str` of the error is not
        return reason
    if detail["type"] in _UNKNOWN_KEYS and model:
        *outer, __ = detail["loc"]
        known = dict.fromkeys(key for each in _models_at(outer, model) for key in _keys(each))
        return unknown_key(known)
    if template:
        return template.format(value=shown(detail["input"]), **context)
    return _("invalid value (“{value}”)").format(value=shown(detail["input"]))


def unknown_key(known: Collection[str]) -> Text:
    """Say that a key is unknown, and which ones there are."""
    if 0 < len(known) <= MOST_LISTED_KEYS:
        return _("unknown key; there are: {known}").format(known=", ".join(known))
    return _("unknown key; check its spelling").format()


def _models_at(path: Sequence[int | str], model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return the models that may stand at a path of keys and positions."""
    found = [model]
    for step in path:
        fields = [
            each.model_fields[name] for each in found for name in each.model_fields if name == step
        ]
        # Other steps are positions in a list or the name of a choice: the model is the same.
        found = [own for field in fields for own in _models_in(field.annotation)] or found
    return found


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _choices(listed: str) -> str:
    others, separator, last = listed.rpartition(" or ")
    return _("{others} or {last}").format(others=others, last=last) if separator else listed


_UNKNOWN_KEYS = ("extra_forbidden", "invalid_key")
_PROBLEMS: Mapping[str, Text] = {
    "missing": _("this field is missing"),
    "extra_forbidden": _("unknown key; check its spelling"),
    "invalid_key": _("unknown key; check its spelling"),
    "greater_than_equal": _("{value} is less than the minimum, {ge}"),
    "less_than_equal": _("{value} is greater than the maximum, {le}"),
    "greater_than": _("{value} must be greater than {gt}"),
    "less_than": _("{value} must be less than {lt}"),
    "string_pattern_mismatch": _(
        "“{value}” may only have lower-case letters without accents, digits and _"
    ),
    "string_too_short": _("must not be empty"),
    "too_short": _("must not be empty"),
    "literal_error": _("“{value}” is not one of the options: {expected}"),
    "enum": _("“{value}” is not one of the options: {expected}"),
    "int_parsing": _("“{value}” is not a whole number"),
    "int_type": _("“{value}” is not a whole number"),
    "int_from_float": _("“{value}” is not a whole number"),
    "int_parsing_size": _("“{value}” is too large a number"),
    "float_parsing": _("“{value}” is not a number"),
    "float_type": _("“{value}” is not a number"),
    "finite_number": _("“{value}” is not a number"),
    "bool_parsing": _("“{value}” is neither true nor false"),
    "bool_type": _("“{value}” is neither true nor false"),
    "string_type": _("“{value}” is not a text: put it in quotes"),
    "string_unicode": _("“{value}” is not a text: put it in quotes"),
    "string_too_long": _("has more than {max_length} characters or values"),
    "too_long": _("has more than {max_length} characters or values"),
    "uuid_parsing": _("“{value}” is not an identifier (UUID)"),
    "uuid_type": _("“{value}” is not an identifier (UUID)"),
    "datetime_parsing": _(
        "“{value}” is not a date; write it like this: 2025-03-14 or 2025-03-14T18:30:00+01:00"
    ),
    "datetime_from_date_parsing": _(
        "“{value}” is not a date; write it like this: 2025-03-14 or 2025-03-14T18:30:00+01:00"
    ),
    "datetime_type": _(
        "“{value}” is not a date; write it like this: 2025-03-14 or 2025-03-14T18:30:00+01:00"
    ),
    "model_type": _("a group of fields was expected, not “{value}”"),
    "dict_type": _("a group of fields was expected, not “{value}”"),
    "tuple_type": _("a list was expected, not “{value}”"),
    "list_type": _("a list was expected, not “{value}”"),
}
