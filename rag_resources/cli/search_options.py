"""The options that say where and how to search, shared by the commands that do."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.core.messages import Message
from rag_resources.core.texts import Text, joined

if TYPE_CHECKING:
    from rag_resources.core.filters import RetrievalFilters

QuestionArgument = Annotated[str, typer.Argument(metavar="PREGUNTA", help=Message.HELP_QUESTION)]
ConfigOption = Annotated[
    str | None, typer.Option("--config", metavar="NOMBRE", help=Message.HELP_CONFIG)
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="CAMPO=VALOR", help=Message.HELP_SET)
]
TopKOption = Annotated[int | None, typer.Option("--top-k", metavar="N", help=Message.HELP_TOP_K)]
SourceOption = Annotated[
    str | None, typer.Option("--source", metavar="FUENTE", help=Message.HELP_FILTER_SOURCE)
]
TagOption = Annotated[
    list[str] | None, typer.Option("--tag", metavar="ETIQUETA", help=Message.HELP_FILTER_TAG)
]
NoteOption = Annotated[
    list[str] | None, typer.Option("--note", metavar="UUID", help=Message.HELP_FILTER_NOTE)
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="FECHA", help=Message.HELP_FILTER_SINCE)
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="FECHA", help=Message.HELP_FILTER_UNTIL)
]
MetadataOption = Annotated[
    list[str] | None,
    typer.Option("--metadata", metavar="CLAVE=VALOR", help=Message.HELP_FILTER_METADATA),
]
LanguageOption = Annotated[
    str | None, typer.Option("--language", metavar="LENGUA", help=Message.HELP_LANGUAGE)
]


def given(**values: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in values.items() if value is not None}


def assignments(pairs: list[str] | None, option: str) -> dict[str, str]:
    """Parse `name=value` pairs; a later pair replaces an earlier one of the same name.

    Raises:
        InvalidParameterError: A text is not such a pair.
    """
    from rag_resources.core.errors import InvalidParameterError
    from rag_resources.core.quoting import shown

    read = {}
    for assignment in pairs or []:
        name, equals, value = assignment.partition("=")
        if not (name.strip() and equals):
            message = Message.ASSIGNMENT_INVALID.format(option=option, value=shown(assignment))
            raise InvalidParameterError(message, option=option)
        read[name.strip()] = value.strip()
    return read


def _metadata(pairs: list[str] | None) -> dict[str, Any]:
    return {name: _json_or_text(value) for name, value in assignments(pairs, "--metadata").items()}


def _json_or_text(value: str) -> Any:
    """Parse a number, truth value, null or quoted text; anything else is taken as text."""
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return value if isinstance(read, dict | list) else read


def filters_of(
    *,
    source: str | None = None,
    tag: list[str] | None = None,
    note_id: list[str] | None = None,
    since: str | None = None,
    until: str | None = None,
    metadata: list[str] | None = None,
) -> "RetrievalFilters":
    """Validate the options that filter notes; errors name the option instead of the field.

    Raises:
        InvalidFiltersError: Some filters are invalid; all problems are named.
    """
    from rag_resources.core.errors import InvalidFiltersError
    from rag_resources.core.filters import parse_filters

    try:
        return parse_filters(
            given(
                source=source,
                tags=tag,
                note_ids=note_id,
                created_from=since,
                created_until=until,
                metadata=_metadata(metadata),
            )
        )
    except InvalidFiltersError as error:
        problems = [_as_option(problem) for problem in error.problems]
        raise InvalidFiltersError(Message.INVALID_FILTERS, problems) from error


def _as_option(problem: str) -> str:
    """Name the option instead of the field in a problem of `core.validation`."""
    if not isinstance(problem, Text):
        return problem
    path, reason = problem.values["items"]
    field, *inside = path.split(".")
    if field not in _OPTIONS:  # It is about both.
        return Message.FILTER_EMPTY_PERIOD.format(start="--since", end="--until")
    keys = inside if field == "metadata" else ()  # elsewhere they are positions
    return joined(": ", (" ".join((_OPTIONS[field], *keys)), reason))


_OPTIONS = {
    "source": "--source",
    "tags": "--tag",
    "note_ids": "--note",
    "created_from": "--since",
    "created_until": "--until",
    "metadata": "--metadata",
}
