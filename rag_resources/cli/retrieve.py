"""`rag retrieve`: parses a question, the search options and the filters. See `cli.answer`."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.answer import show
from rag_resources.cli.output import JsonOption, clean, working, write_json
from rag_resources.cli.reader import answer_in, told
from rag_resources.cli.session import application, read_settings
from rag_resources.core.messages import Message
from rag_resources.core.texts import Text, joined

if TYPE_CHECKING:
    from rag_resources.core.filters import RetrievalFilters


def retrieve(
    question: Annotated[str, typer.Argument(metavar="PREGUNTA", help=Message.HELP_QUESTION)],
    config: Annotated[
        str | None, typer.Option("--config", metavar="NOMBRE", help=Message.HELP_CONFIG)
    ] = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", metavar="ESTRATEGIA", help=Message.HELP_STRATEGY)
    ] = None,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="N", help=Message.HELP_TOP_K)
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODELO", help=Message.HELP_MODEL)
    ] = None,
    changed: Annotated[
        list[str] | None, typer.Option("--set", metavar="CAMPO=VALOR", help=Message.HELP_SET)
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="FUENTE", help=Message.HELP_FILTER_SOURCE)
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="ETIQUETA", help=Message.HELP_FILTER_TAG)
    ] = None,
    note_id: Annotated[
        list[str] | None, typer.Option("--note", metavar="UUID", help=Message.HELP_FILTER_NOTE)
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="FECHA", help=Message.HELP_FILTER_SINCE)
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="FECHA", help=Message.HELP_FILTER_UNTIL)
    ] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option("--metadata", metavar="CLAVE=VALOR", help=Message.HELP_FILTER_METADATA),
    ] = None,
    language: Annotated[
        str | None, typer.Option("--language", metavar="LENGUA", help=Message.HELP_LANGUAGE)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question."""
    from rag_resources.core.configuration import nested_fields
    from rag_resources.retrieval.request import check_query

    answer_in(read_settings().answer_language if language is None else language)
    fields = {**_assignments(changed, "--set"), **_given(strategy=strategy, model=model)}
    filters = _filters(
        source=source,
        tags=tag,
        note_ids=note_id,
        created_from=since,
        created_until=until,
        metadata=_metadata(metadata),
    )
    query = clean(question)
    check_query(query)  # Before the database is started.
    with application() as app, working(Message.CLI_LOADING):
        answered = app.retrieve(
            query,
            configuration=config,
            overrides=nested_fields(fields),
            top_k=top_k,
            filters=filters,
            language=language,
        )
    response = answered.response.reworded(told)
    if as_json:
        write_json(response.to_json())
    else:
        show(response, answered.configuration, filtered=not filters.is_empty)
    if response.error:
        raise typer.Exit(1)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _assignments(assignments: list[str] | None, option: str) -> dict[str, str]:
    """Parse `name=value` pairs; a later pair replaces an earlier one of the same name.

    Raises:
        InvalidParameterError: A text is not such a pair.
    """
    from rag_resources.core.errors import InvalidParameterError
    from rag_resources.core.quoting import shown

    read = {}
    for assignment in assignments or []:
        name, equals, value = assignment.partition("=")
        if not (name.strip() and equals):
            message = Message.ASSIGNMENT_INVALID.format(option=option, value=shown(assignment))
            raise InvalidParameterError(message, option=option)
        read[name.strip()] = value.strip()
    return read


def _metadata(assignments: list[str] | None) -> dict[str, Any]:
    return {
        name: _json_or_text(value)
        for name, value in _assignments(assignments, "--metadata").items()
    }


def _json_or_text(value: str) -> Any:
    """Parse a number, truth value, null or quoted text; anything else is taken as text."""
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return value if isinstance(read, dict | list) else read


def _filters(**values: Any) -> "RetrievalFilters":
    """Validate filters; errors name the option instead of the field.

    Raises:
        InvalidFiltersError: Some filters are invalid; all problems are named.
    """
    from rag_resources.core.errors import InvalidFiltersError
    from rag_resources.core.filters import parse_filters

    try:
        return parse_filters(_given(**values))
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
