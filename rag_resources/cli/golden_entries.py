"""`rag golden list|show|add|update|delete`: single golden questions."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import (
    JsonOption,
    conclude,
    confirmed,
    print_table,
    say,
    warn,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.core.errors import InvalidGoldenDatasetError, InvalidParameterError
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.core.golden import GoldenEntry
    from rag_resources.golden.dataset import Golden

ID_CHARS = 8
"""Characters shown of an id in a list: enough for thousands; `find_entry` takes any prefix."""

GoldenId = Annotated[
    str, typer.Argument(metavar="ID", help=_("Identifier of the question; its beginning will do."))
]
Reason = Annotated[
    str,
    typer.Option(
        "--reason",
        help=_("Why. Without a reason a question stays asked as it was until the next promotion."),
    ),
]
GoldenIds = Annotated[
    list[str],
    typer.Argument(metavar="ID...", help=_("Identifier of the question; its beginning will do.")),
]
Query = Annotated[str | None, typer.Option("--query", metavar="PREGUNTA", help=_("The question."))]
Notes = Annotated[
    list[str] | None,
    typer.Option(
        "--note",
        metavar="NOTA",
        help=_(
            "Note that answers it, by its identifier or that of its source. May be repeated; in a "
            "change they replace those that are there."
        ),
    ),
]
Answer = Annotated[
    str | None, typer.Option("--answer", metavar="RESPUESTA", help=_("The expected answer."))
]
Category = Annotated[
    str | None,
    typer.Option(
        "--category",
        metavar="CATEGORÍA",
        help=_("factual, causal, temporal, comparative or multi-part."),
    ),
]
Difficulty = Annotated[
    int | None, typer.Option("--difficulty", metavar="N", help=_("From 1 to 5."))
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="ETIQUETA",
        help=_(
            "Tag. May be repeated; in a change they replace those that are there, and an empty "
            "one removes all."
        ),
    ),
]
Places = Annotated[
    list[str] | None,
    typer.Option(
        "--place",
        metavar="NOTA=TEXTO",
        help=_(
            "Place that answers it, as NOTE=TEXT: the exact text, which is in the note once. May "
            "be repeated; in a change they replace those that are there, and an empty one removes "
            "all."
        ),
    ),
]
OPTIONS = {
    "query": "--query",
    "relevantNotes": "--note",
    "expectedAnswer": "--answer",
    "category": "--category",
    "difficulty": "--difficulty",
    "tags": "--tag",
}
"""The option that sets each field of a question."""


def list_entries(
    category: Annotated[
        str | None,
        typer.Option("--category", metavar="CATEGORÍA", help=_("Only those of this category.")),
    ] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="ETIQUETA", help=_("Only those with this tag."))
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the questions."""
    from rag_resources.core.golden import CATEGORIES

    if category is not None and category not in CATEGORIES:
        known = ", ".join(CATEGORIES)
        raise InvalidParameterError(
            _("category: “{value}” is none of {known}").format(value=category, known=known)
        )
    with application() as opened:
        entries = [
            entry
            for entry in opened.golden.entries()
            if category in {None, entry.category} and (tag is None or tag in entry.tags)
        ]
    if as_json:
        write_json({"entries": [entry.to_json() for entry in entries]})
        return
    columns = (
        _("Id"),
        _("Question"),
        _("Category"),
        _("Difficulty"),
        _("Notes"),
        _("Tags"),
    )
    print_table(columns, [_columns(entry) for entry in entries], prose=True)
    say(_("Questions: {count}.").format(count=len(entries)))


def show(golden_id: GoldenId, as_json: JsonOption = False) -> None:
    """Show everything known about a question."""
    with application() as opened:
        entry, names = opened.golden.find(golden_id)
    if as_json:
        write_json(entry.to_json())
        return
    shown = {
        note_id: names[note_id]
        if note_id in names
        else _("{note_id} (gone)").format(note_id=note_id)
        for note_id in entry.relevant_note_ids
    }
    places = (
        f"{shown[place.note_id]} [{place.start}–{place.end}] «{place.text}»"
        for place in entry.places
    )
    rows = [
        (_("Id"), str(entry.golden_id)),
        (_("Question"), entry.query),
        (_("Expected answer"), entry.expected_answer),
        (_("Notes"), "\n".join(shown.values())),
        *([(_("Places"), "\n".join(places))] if entry.places else []),
        (_("Category"), entry.category),
        (_("Difficulty"), str(entry.difficulty)),
        (_("Tags"), ", ".join(entry.tags)),
        (_("Created"), f"{entry.created_at:%Y-%m-%d %H:%M %Z}"),
        (_("Updated"), f"{entry.updated_at:%Y-%m-%d %H:%M %Z}"),
    ]
    print_table((_("Field"), _("Value")), rows, prose=True)


def add(
    question: Annotated[
        str | None, typer.Argument(metavar="PREGUNTA", help=_("The question."))
    ] = None,
    query: Query = None,
    notes: Notes = None,
    answer: Answer = None,
    category: Category = None,
    difficulty: Difficulty = None,
    tags: Tags = None,
    places: Places = None,
    as_json: JsonOption = False,
) -> None:
    """Add a question."""
    if question is not None and query is not None:
        raise InvalidParameterError(
            _("The question was given twice: write it by itself or with --query, not both.")
        )
    query = query if question is None else question
    fields = _fields(query, notes, answer, category, difficulty, tags, places)
    with application() as opened:
        with _told_by_option():
            entry = opened.golden.add(fields, origin="rag golden add")
        message = _("Question added: {golden_id}").format(golden_id=entry.golden_id)
        conclude(message, entry.to_json(), as_json=as_json)
        warn_of_source(opened.golden.source)


def update(
    golden_id: GoldenId,
    query: Query = None,
    notes: Notes = None,
    answer: Answer = None,
    category: Category = None,
    difficulty: Difficulty = None,
    tags: Tags = None,
    places: Places = None,
    reviewed: Annotated[
        bool,
        typer.Option(
            "--reviewed",
            help=_("The question was reviewed and still holds, although its notes have changed."),
        ),
    ] = False,
    reason: Reason = "",
    as_json: JsonOption = False,
) -> None:
    """Change a question, or confirm that it is still right."""
    fields = _fields(query, notes, answer, category, difficulty, tags, places)
    if not fields and not reviewed:
        raise InvalidParameterError(
            _("No change was given. If the question still holds as it is, say so with --reviewed.")
        )
    with application() as opened:
        with _told_by_option():
            entry = opened.golden.update(
                golden_id, fields, origin="rag golden update", reason=reason
            )
        message = _("Question updated: {golden_id}").format(golden_id=entry.golden_id)
        conclude(message, entry.to_json(), as_json=as_json)
        warn_of_source(opened.golden.source)
        warn_of_withdrawn(opened.golden)


def delete(
    golden_ids: GoldenIds,
    reason: Reason = "",
    yes: Annotated[bool, typer.Option("--yes", help=_("Deletes without asking."))] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete questions after confirmation by a person."""
    with application() as opened:
        found = (opened.golden.find(each)[0] for each in golden_ids)
        entries = list(dict.fromkeys(found))
        if not (yes or _confirmed(entries)):
            raise InvalidParameterError(
                _("Nothing was deleted. To delete without being asked, add --yes.")
            )
        opened.golden.delete(entries, origin="rag golden delete", reason=reason)
        deleted = {"deleted": [str(entry.golden_id) for entry in entries]}
        message = _("Questions deleted: {count}. They stay in the history.").format(
            count=len(entries)
        )
        conclude(message, deleted, as_json=as_json)
        warn_of_source(opened.golden.source)
        warn_of_withdrawn(opened.golden)


def warn_of_withdrawn(golden: "Golden") -> None:
    """Say how many questions are still asked although they were removed or changed."""
    if withdrawn := len(golden.withdrawn()):
        warn(
            _(
                "Questions removed or changed without --reason since the last promotion: {count}. "
                "They are still asked, as they were, until the next one."
            ).format(count=withdrawn)
        )


def warn_of_source(source: Path | None, *, imported: Path | None = None) -> None:
    """Say that what was changed here stays, and is not in the file of GOLDEN_SOURCE."""
    if source and (imported is None or imported.resolve() != source.resolve()):
        warn(
            _(
                "It is stored, also when “rag run” or the UI import GOLDEN_SOURCE ({path}) again: "
                "that file neither changes it nor brings back what you delete. To have it in a "
                "file as well, “rag golden export FILE”."
            ).format(path=source)
        )


def _confirmed(entries: "Sequence[GoldenEntry]") -> bool:
    about = [f"{_short_id(entry)}  {entry.query}" for entry in entries]
    return confirmed(_("To delete: {count}. Go on? (y/N)").format(count=len(entries)), about=about)


def _fields(
    query: str | None,
    notes: list[str] | None,
    answer: str | None,
    category: str | None,
    difficulty: int | None,
    tags: list[str] | None,
    places: list[str] | None,
) -> dict[str, Any]:
    """Return the options that were given, as the fields of a file."""
    options = {
        "query": query,
        "relevantNotes": notes,
        "expectedAnswer": answer,
        "category": category,
        "difficulty": difficulty,
        "tags": [tag for tag in tags if tag] if tags else None,
        "places": [_place(place) for place in places if place] if places else None,
    }
    return {name: value for name, value in options.items() if value is not None}


@contextmanager
def _told_by_option() -> Iterator[None]:
    """Name the option of each wrong field."""
    try:
        yield
    except InvalidGoldenDatasetError as error:
        problems = [_with_option(problem) for problem in error.problems]
        raise InvalidGoldenDatasetError(error.headline, problems) from error


def _with_option(problem: str) -> str:
    field, colon, reason = problem.partition(":")
    return f"{OPTIONS[field]}:{reason}" if colon and field in OPTIONS else problem


def _place(option: str) -> dict[str, str]:
    """Parse `NOTE=TEXT`; the text may contain further equals signs."""
    note, equals, text = option.partition("=")
    if not (note.strip() and equals):
        raise InvalidParameterError(
            _("--place “{value}”: NOTE=TEXT is expected.").format(value=option)
        )
    return {"note": note.strip(), "text": text}


def _columns(entry: "GoldenEntry") -> tuple[str, ...]:
    return (
        _short_id(entry),
        entry.query,
        entry.category,
        str(entry.difficulty),
        str(len(entry.relevant_note_ids)),
        ", ".join(entry.tags),
    )


def _short_id(entry: "GoldenEntry") -> str:
    return str(entry.golden_id)[:ID_CHARS]
