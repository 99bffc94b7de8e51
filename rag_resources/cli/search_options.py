"""The options that say where and how to search, shared by the commands that do."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from rag_resources.cli.output import answer_in, clean
from rag_resources.cli.session import read_settings
from rag_resources.core.errors import InvalidFiltersError, InvalidParameterError
from rag_resources.languages.messages import Text, _, joined

if TYPE_CHECKING:
    from rag_resources.application import Application
    from rag_resources.core.filters import RetrievalFilters

QuestionArgument = Annotated[str, typer.Argument(metavar="PREGUNTA", help=_("The question."))]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config", metavar="NOMBRE", help=_("Named configuration; by default the promoted one.")
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="CAMPO=VALOR",
        help=_("Changes a field of the configuration, such as fusion.method=rrf. May be repeated."),
    ),
]
TopKOption = Annotated[
    int | None, typer.Option("--top-k", metavar="N", help=_("How many results, from 1 to 50."))
]
FilterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="NOMBRE=VALOR",
        help=_(
            "Only such notes: source=, date_source=, tag=, note=, since=, until= or metadata.KEY=. "
            "May be repeated."
        ),
    ),
]
LanguageOption = Annotated[
    str | None,
    typer.Option("--language", metavar="LENGUA", help=_("Of question and answer: es, fr or en.")),
]

_FIELDS = {"since": "created_from", "until": "created_until"}
_LISTS = {"tag": "tags", "note": "note_ids"}
_NAMES = {field: name for name, field in (_FIELDS | _LISTS).items()}


@dataclass(frozen=True, slots=True)
class Search:
    """A question, and where and how to search for what answers it.

    Attributes:
        options: The other arguments of `Application.retrieve`, without filters.
        filters: `--filter`, repeated.
    """

    question: str
    options: dict[str, Any]
    filters: Sequence[str]

    def arguments(self, app: "Application") -> dict[str, Any]:
        """Return the other arguments of `Application.retrieve`.

        Args:
            app: Where notes are looked up by their names.

        Raises:
            InvalidInputError: One of the notes does not exist, was deleted, or has a name that
                several have.
        """
        filters = filters_of(self.filters, lambda name: _present(app, name))
        return {**self.options, "filters": filters}


def _present(app: "Application", name: str) -> str:
    from rag_resources.store.notes import StoredNote

    found = app.notes.find(name)
    if isinstance(found, StoredNote):
        return str(found.note_id)
    raise InvalidParameterError(
        _("“{name}” is deleted, so it is not searched.").format(name=found.external_id), name=name
    )


def search_of(
    question: str,
    *,
    config: str | None,
    top_k: int | None,
    changed: list[str] | None,
    filters: list[str] | None,
    language: str | None,
    strategy: str | None = None,
    has_words: bool = True,
) -> Search:
    """Validate the options of a search, and speak to the reader in the language of its question.

    Nothing is started for a question that nobody can answer.

    Args:
        question: As given on the command line.
        config: `--config`.
        top_k: `--top-k`.
        changed: `--set`, repeated.
        filters: `--filter`, repeated.
        language: `--language`; None uses the settings'.
        strategy: `--strategy`.
        has_words: Whether the question must have a word to search; `rag ask` can do without, since
            it asks back or follows up on an answer.

    Raises:
        InvalidInputError: The question or an option is invalid.
    """
    from rag_resources.core.configuration import nested_fields
    from rag_resources.languages.messages import readers
    from rag_resources.retrieval.request import check_query, check_top_k, check_words

    default = read_settings().answer_language
    answer_in(readers(language, default))
    fields = dict(assignments(changed, "--set"))
    if strategy is not None:
        fields["strategy"] = strategy
    filters_of(filters, lambda _name: str(UUID(int=0)))
    query = clean(question)
    check_query(query)
    if has_words:
        check_words(query, default if language is None else language)
    if top_k is not None:
        check_top_k(top_k)
    options = {
        "configuration": config,
        "overrides": nested_fields(fields),
        "top_k": top_k,
        "language": language,
    }
    return Search(query, options, filters or ())


def assignments(pairs: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """Parse `name=value` pairs.

    Raises:
        InvalidParameterError: A text is not such a pair.
    """
    from rag_resources.core.quoting import shown

    read = []
    for assignment in pairs or []:
        name, equals, value = assignment.partition("=")
        if not (name.strip() and equals):
            message = _("{option}: “{value}” does not have the form name=value.").format(
                option=option, value=shown(assignment)
            )
            raise InvalidParameterError(message, option=option)
        read.append((name.strip(), value.strip()))
    return read


def filters_of(pairs: Sequence[str] | None, note_id: Callable[[str], str]) -> "RetrievalFilters":
    """Validate `--filter`, repeated.

    Args:
        pairs: As given on the command line.
        note_id: Returns the id of a note by its name.

    Raises:
        InvalidInputError: Some filters are invalid; all problems are named.
    """
    from rag_resources.core.filters import parse_filters

    raw: dict[str, Any] = {"metadata": {}, "tags": [], "note_ids": []}
    for name, value in assignments(pairs, "--filter"):
        kind, dot, key = name.partition(".")
        if kind == "metadata" and dot:
            raw["metadata"][key] = _json_or_text(value)
        elif name in _LISTS:
            raw[_LISTS[name]].append(note_id(value) if name == "note" else value)
        else:
            raw[_FIELDS.get(name, name)] = value
    try:
        return parse_filters(raw)
    except InvalidFiltersError as error:
        problems = [_as_given(problem) for problem in error.problems]
        raise InvalidFiltersError(error.headline, problems) from error


def _json_or_text(value: str) -> Any:
    """Parse a number, truth value, null or quoted text; anything else is taken as text."""
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return value if isinstance(read, dict | list) else read


def _as_given(problem: str) -> str:
    """Name what was given instead of the field in a problem of `core.validation`."""
    if not isinstance(problem, Text):
        return problem
    path, reason = problem.values["items"]
    field, *inside = path.split(".")
    name = ".".join((field, *inside)) if field == "metadata" else _NAMES.get(field, field)
    return joined(": ", (name, reason))
