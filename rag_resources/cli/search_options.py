"""The options that say where and how to search, shared by the commands that do."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import answer_in, clean
from rag_resources.cli.session import read_settings
from rag_resources.languages.messages import Text, _, joined

if TYPE_CHECKING:
    from rag_resources.application.notes import Notes
    from rag_resources.core.filters import RetrievalFilters
    from rag_resources.store.notes import StoredNote

QuestionArgument = Annotated[str, typer.Argument(metavar="PREGUNTA", help=_("The question."))]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="NOMBRE",
        help=_(
            "Named configuration. By default the promoted one; if there is none, hybrid_windows."
        ),
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
StrategyOption = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="ESTRATEGIA",
        help=_(
            "semantic, fulltext, hybrid or hybrid+rerank, instead of that of the configuration."
        ),
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODELO",
        help=_("Embedding model, instead of that of the configuration."),
    ),
]
TopKOption = Annotated[
    int | None, typer.Option("--top-k", metavar="N", help=_("How many results, from 1 to 50."))
]
SourceOption = Annotated[
    str | None, typer.Option("--source", metavar="FUENTE", help=_("Only notes of this source."))
]
TagOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="ETIQUETA",
        help=_("Only notes with this tag. May be repeated: with all of them."),
    ),
]
NoteOption = Annotated[
    list[str] | None,
    typer.Option(
        "--note",
        metavar="NOTA",
        help=_("Only this note, by its name in “rag notes list” or its UUID. May be repeated."),
    ),
]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="FECHA", help=_("Only notes since this date."))
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="FECHA", help=_("Only notes before this date."))
]
MetadataOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata",
        metavar="CLAVE=VALOR",
        help=_("Only notes with this value among their metadata. May be repeated."),
    ),
]
LanguageOption = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="LENGUA",
        help=_(
            "Language of the question and the answer: es, fr or en. By default that of "
            "ANSWER_LANGUAGE."
        ),
    ),
]


@dataclass(frozen=True, slots=True)
class Search:
    """A question, and where and how to search for what answers it.

    Attributes:
        options: The other arguments of `Application.retrieve`, without filters.
        filters: Those that need no database.
        notes: The notes to search, by id or external id; empty searches all.
    """

    question: str
    options: dict[str, Any]
    filters: "RetrievalFilters"
    notes: tuple[str, ...]

    @property
    def is_filtered(self) -> bool:
        """Whether filters restrict the notes."""
        return bool(self.notes) or not self.filters.is_empty

    def arguments(self, stored: "Notes") -> dict[str, Any]:
        """Return the other arguments of `Application.retrieve`.

        Args:
            stored: Where the notes are looked up.

        Raises:
            InvalidInputError: One of the notes does not exist, was deleted, or has a name that
                several have.
        """
        note_ids = tuple(_present(stored, name).note_id for name in self.notes)
        filters = self.filters.model_copy(update={"note_ids": note_ids})
        return {**self.options, "filters": filters}


def _present(stored: "Notes", name: str) -> "StoredNote":
    from rag_resources.core.errors import InvalidParameterError
    from rag_resources.store.notes import StoredNote

    found = stored.find(name)
    if isinstance(found, StoredNote):
        return found
    raise InvalidParameterError(
        _(
            "“{name}” is deleted, so it is not searched. If it is still kept, “rag notes restore "
            "{name}” brings it back."
        ).format(name=found.external_id),
        name=name,
    )


def search_of(
    question: str,
    *,
    config: str | None,
    strategy: str | None,
    model: str | None,
    changed: list[str] | None,
    top_k: int | None,
    language: str | None,
    has_words: bool = True,
    notes: list[str] | None = None,
    **filters: Any,
) -> Search:
    """Validate the options of a search, and speak to the reader in the language of its question.

    Nothing is started for a question that nobody can answer.

    Args:
        question: As given on the command line.
        config: `--config`.
        strategy: `--strategy`.
        model: `--model`.
        changed: `--set`, repeated.
        top_k: `--top-k`.
        language: `--language`; None uses the settings'.
        has_words: Whether the question must have a word to search; `rag ask` can do without, since
            it asks back or follows up on an answer.
        notes: `--note`, repeated.
        filters: See `filters_of`.

    Raises:
        InvalidInputError: The question or an option is invalid.
    """
    from rag_resources.core.configuration import nested_fields
    from rag_resources.languages.messages import readers
    from rag_resources.retrieval.request import check_query, check_top_k, check_words

    default = read_settings().answer_language
    spoken = default if language is None else language
    answer_in(readers(language, default))
    fields = {**assignments(changed, "--set"), **given(strategy=strategy, model=model)}
    wanted = filters_of(**filters)
    query = clean(question)
    check_query(query)
    if has_words:
        check_words(query, spoken)
    if top_k is not None:
        check_top_k(top_k)
    options = {
        "configuration": config,
        "overrides": nested_fields(fields),
        "top_k": top_k,
        "language": language,
    }
    return Search(query, options, wanted, tuple(notes or ()))


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
            message = _("{option}: “{value}” does not have the form name=value.").format(
                option=option, value=shown(assignment)
            )
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
        raise InvalidFiltersError(_("The filters are not valid:"), problems) from error


def _as_option(problem: str) -> str:
    """Name the option instead of the field in a problem of `core.validation`."""
    if not isinstance(problem, Text):
        return problem
    path, reason = problem.values["items"]
    field, *inside = path.split(".")
    if field not in _OPTIONS:  # The problem is about both ends of a period.
        return _("{start} must be before {end}").format(start="--since", end="--until")
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
