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
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.core.golden import GoldenEntry

ID_CHARS = 8
"""Characters shown of an id in a list: enough for thousands; `find_entry` takes any prefix."""

GoldenId = Annotated[str, typer.Argument(metavar="ID", help=Message.HELP_GOLDEN_ID)]
GoldenIds = Annotated[list[str], typer.Argument(metavar="ID...", help=Message.HELP_GOLDEN_ID)]
Query = Annotated[
    str | None, typer.Option("--query", metavar="PREGUNTA", help=Message.HELP_GOLDEN_QUERY)
]
Notes = Annotated[
    list[str] | None, typer.Option("--note", metavar="NOTA", help=Message.HELP_GOLDEN_NOTE)
]
Answer = Annotated[
    str | None, typer.Option("--answer", metavar="RESPUESTA", help=Message.HELP_GOLDEN_ANSWER)
]
Category = Annotated[
    str | None, typer.Option("--category", metavar="CATEGORÍA", help=Message.HELP_GOLDEN_CATEGORY)
]
Difficulty = Annotated[
    int | None, typer.Option("--difficulty", metavar="N", help=Message.HELP_GOLDEN_DIFFICULTY)
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="ETIQUETA", help=Message.HELP_GOLDEN_TAG)
]
Places = Annotated[
    list[str] | None,
    typer.Option("--place", metavar="NOTA=TEXTO", help=Message.HELP_GOLDEN_PLACE),
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
        typer.Option("--category", metavar="CATEGORÍA", help=Message.HELP_GOLDEN_ONLY_CATEGORY),
    ] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="ETIQUETA", help=Message.HELP_GOLDEN_ONLY_TAG)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the questions."""
    from rag_resources.core.golden import CATEGORIES

    if category is not None and category not in CATEGORIES:
        known = ", ".join(CATEGORIES)
        raise InvalidParameterError(Message.GOLDEN_CATEGORY.format(value=category, known=known))
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
        Message.COLUMN_ID,
        Message.COLUMN_QUESTION,
        Message.COLUMN_CATEGORY,
        Message.COLUMN_DIFFICULTY,
        Message.COLUMN_NOTES,
        Message.COLUMN_TAGS,
    )
    print_table(columns, [_columns(entry) for entry in entries], prose=True)
    say(Message.GOLDEN_LISTED.format(count=len(entries)))


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
        else Message.GOLDEN_NOTE_GONE.format(note_id=note_id)
        for note_id in entry.relevant_note_ids
    }
    places = (
        f"{shown[place.note_id]} [{place.start}–{place.end}] «{place.text}»"
        for place in entry.places
    )
    rows = [
        (Message.COLUMN_ID, str(entry.golden_id)),
        (Message.COLUMN_QUESTION, entry.query),
        (Message.COLUMN_ANSWER, entry.expected_answer),
        (Message.COLUMN_NOTES, "\n".join(shown.values())),
        *([(Message.COLUMN_PLACES, "\n".join(places))] if entry.places else []),
        (Message.COLUMN_CATEGORY, entry.category),
        (Message.COLUMN_DIFFICULTY, str(entry.difficulty)),
        (Message.COLUMN_TAGS, ", ".join(entry.tags)),
        (Message.COLUMN_CREATED, f"{entry.created_at:%Y-%m-%d %H:%M %Z}"),
        (Message.COLUMN_UPDATED, f"{entry.updated_at:%Y-%m-%d %H:%M %Z}"),
    ]
    print_table((Message.COLUMN_FIELD, Message.COLUMN_VALUE), rows, prose=True)


def add(
    question: Annotated[
        str | None, typer.Argument(metavar="PREGUNTA", help=Message.HELP_GOLDEN_QUERY)
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
        raise InvalidParameterError(Message.GOLDEN_QUERY_TWICE)
    query = query if question is None else question
    fields = _fields(query, notes, answer, category, difficulty, tags, places)
    with application() as opened:
        with _told_by_option():
            entry = opened.golden.add(fields, origin="rag golden add")
        message = Message.GOLDEN_ADDED.format(golden_id=entry.golden_id)
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
        bool, typer.Option("--reviewed", help=Message.HELP_GOLDEN_REVIEWED)
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Change a question, or confirm that it is still right."""
    fields = _fields(query, notes, answer, category, difficulty, tags, places)
    if not fields and not reviewed:
        raise InvalidParameterError(Message.GOLDEN_NOTHING_TO_CHANGE)
    with application() as opened:
        with _told_by_option():
            entry = opened.golden.update(golden_id, fields, origin="rag golden update")
        message = Message.GOLDEN_UPDATED.format(golden_id=entry.golden_id)
        conclude(message, entry.to_json(), as_json=as_json)
        warn_of_source(opened.golden.source)


def delete(
    golden_ids: GoldenIds,
    yes: Annotated[bool, typer.Option("--yes", help=Message.HELP_GOLDEN_YES)] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete questions after confirmation by a person."""
    with application() as opened:
        found = (opened.golden.find(each)[0] for each in golden_ids)
        entries = list(dict.fromkeys(found))
        if not (yes or _confirmed(entries)):
            raise InvalidParameterError(Message.GOLDEN_DELETE_UNCONFIRMED)
        opened.golden.delete(entries, origin="rag golden delete")
        deleted = {"deleted": [str(entry.golden_id) for entry in entries]}
        message = Message.GOLDEN_DELETED.format(count=len(entries))
        conclude(message, deleted, as_json=as_json)
        warn_of_source(opened.golden.source)


def warn_of_source(source: Path | None, *, imported: Path | None = None) -> None:
    """Say that what was changed here stays, and is not in the file of GOLDEN_SOURCE."""
    if source and (imported is None or imported.resolve() != source.resolve()):
        warn(Message.GOLDEN_SOURCE_RULES.format(path=source))


def _confirmed(entries: "Sequence[GoldenEntry]") -> bool:
    about = [f"{_short_id(entry)}  {entry.query}" for entry in entries]
    return confirmed(Message.GOLDEN_CONFIRM.format(count=len(entries)), about=about)


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
        raise InvalidParameterError(Message.GOLDEN_PLACE_OPTION.format(value=option))
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
