"""`rag golden …`: the golden questions: files of them, and one by one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import (
    JsonOption,
    YesOption,
    conclude,
    note,
    print_table,
    require_consent,
    say,
    show_list,
    warn,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.core.golden import GoldenEntry
    from rag_resources.core.golden_changes import GoldenChange
    from rag_resources.golden.dataset import Golden

ID_CHARS = 8
"""Characters shown of an id in a list: enough for thousands; `find_entry` takes any prefix."""

app = group("golden", _("The golden questions: files, one by one, and their review."))

GoldenFile = Annotated[
    Path, typer.Argument(metavar="FICHERO", help=_("File of questions: JSON, CSV or Parquet."))
]
Reason = Annotated[
    str,
    typer.Option(
        "--reason",
        help=_("Why. Without a reason a question stays asked as it was until the next promotion."),
    ),
]
GoldenId = Annotated[
    str, typer.Argument(metavar="ID", help=_("Identifier of the question; its beginning will do."))
]
GoldenIds = Annotated[
    list[str],
    typer.Argument(metavar="ID...", help=_("Identifier of the question; its beginning will do.")),
]
Notes = Annotated[
    list[str] | None,
    typer.Option("--note", metavar="NOTA", help=_("Note that answers it. May be repeated.")),
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
        "--tag", metavar="ETIQUETA", help=_("Tag. May be repeated; an empty one removes all.")
    ),
]
Places = Annotated[
    list[str] | None,
    typer.Option(
        "--place",
        metavar="NOTA=TEXTO",
        help=_("Exact text that answers it. May be repeated; an empty one removes all."),
    ),
]


@command(app, "import", _("Imports a file, whole or not at all; what a person wrote stays."))
def import_file(
    path: GoldenFile,
    replace: Annotated[
        bool, typer.Option("--replace", help=_("Replaces also what a person wrote."))
    ] = False,
    reason: Reason = "",
    as_json: JsonOption = False,
) -> None:
    """Import a whole file or nothing of it."""
    with application() as opened:
        imported = opened.golden.import_file(path, replace=replace, reason=reason)
        _warn_of_withdrawn(opened.golden)
    others = {
        "kept": [entry.query for entry in imported.kept],
        "leftOut": imported.deleted,
        "orphaned": imported.orphaned,
        "drafts": imported.drafts,
        "unknownKeys": imported.unknown,
    }
    message = _("{path}: new questions: {inserted}; changed: {updated}; deleted: {deleted}.")
    _tell_changes(message, imported.changes, others, as_json=as_json, path=path)
    _tell_left_out(others)


@command(app, "export", _("Writes the questions to a file."))
def export_file(
    path: GoldenFile,
    force: Annotated[
        bool, typer.Option("--force", help=_("Replaces the file; the former one is kept."))
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write the questions to a file."""
    with application() as opened:
        count = opened.golden.export(path, force=force)
    message = _("Questions written to {path}: {count}.").format(count=count, path=path)
    conclude(message, {"path": path, "questions": count}, as_json=as_json)


@command(app, "validate", _("Checks a file of questions against the notes, and stores nothing."))
def validate_file(path: GoldenFile, as_json: JsonOption = False) -> None:
    """Check a file against the stored notes."""
    with application() as opened:
        read = opened.golden.read_file(path)
    message = _("Valid questions in {path}: {count}.").format(count=len(read.entries), path=path)
    others = {"orphaned": read.orphaned, "drafts": read.drafts, "unknownKeys": read.unknown}
    counts = {"questions": len(read.entries), "drafts": len(read.drafts)}
    conclude(message, others | counts, as_json=as_json)
    _tell_left_out(others)


@command(app, "drift", _("Says which questions to review, because their notes changed."))
def drift(as_json: JsonOption = False) -> None:
    """List the questions that need review."""
    with application() as opened:
        found = opened.golden.drift()
    if as_json:
        write_json(found.to_json())
        return
    for finding in found.findings:
        say(f"- {finding}")
    say(found.summary)


@command(app, "list", _("Lists the questions."))
def list_entries(
    category: Category = None,
    tag: Annotated[
        str | None,
        typer.Option("--tag", metavar="ETIQUETA", help=_("Only the questions with this tag.")),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the questions."""
    with application() as opened:
        entries = [
            entry
            for entry in opened.golden.entries()
            if category in {None, entry.category} and (tag is None or tag in entry.tags)
        ]
    if as_json:
        write_json({"entries": [entry.to_json() for entry in entries]})
        return
    columns = (_("Id"), _("Question"), _("Category"), _("Difficulty"), _("Notes"), _("Tags"))
    rows = [
        (
            str(entry.golden_id)[:ID_CHARS],
            entry.query,
            entry.category,
            str(entry.difficulty),
            str(len(entry.relevant_note_ids)),
            ", ".join(entry.tags),
        )
        for entry in entries
    ]
    show_list(columns, rows, len(rows))


@command(app, "show", _("Shows everything that is known of it."))
def show(golden_id: GoldenId, as_json: JsonOption = False) -> None:
    """Show everything known about a question."""
    with application() as opened:
        entry, names = opened.golden.find(golden_id)
    if as_json:
        write_json(entry.to_json())
        return
    shown = {
        note_id: names.get(note_id) or _("{note_id} (gone)").format(note_id=note_id)
        for note_id in entry.relevant_note_ids
    }
    rows = [
        (_("Id"), str(entry.golden_id)),
        (_("Question"), entry.query),
        (_("Expected answer"), entry.expected_answer),
        (_("Notes"), "\n".join(shown.values())),
        *(
            (_("Places"), f"{shown[own.note_id]} [{own.start}–{own.end}] «{own.text}»")
            for own in entry.places
        ),
        (_("Category"), entry.category),
        (_("Difficulty"), str(entry.difficulty)),
        (_("Tags"), ", ".join(entry.tags)),
        (_("Created"), f"{entry.created_at:%Y-%m-%d %H:%M %Z}"),
        (_("Updated"), f"{entry.updated_at:%Y-%m-%d %H:%M %Z}"),
    ]
    print_table((_("Field"), _("Value")), rows, prose=True)


@command(app, "add", _("Adds a question with its note, answer, category and difficulty."))
def add(
    question: Annotated[str, typer.Argument(metavar="PREGUNTA", help=_("The question."))],
    notes: Notes = None,
    answer: Answer = None,
    category: Category = None,
    difficulty: Difficulty = None,
    tags: Tags = None,
    places: Places = None,
    as_json: JsonOption = False,
) -> None:
    """Add a question."""
    fields = _fields(question, notes, answer, category, difficulty, tags, places)
    with application() as opened:
        entry = opened.golden.add(fields, origin="rag golden add")
    message = _("Question stored: {golden_id}").format(golden_id=entry.golden_id)
    conclude(message, entry.to_json(), as_json=as_json)


@command(app, "update", _("Changes the given fields of a question."))
def update(
    golden_id: GoldenId,
    query: Annotated[
        str | None, typer.Option("--query", metavar="PREGUNTA", help=_("The question."))
    ] = None,
    notes: Notes = None,
    answer: Answer = None,
    category: Category = None,
    difficulty: Difficulty = None,
    tags: Tags = None,
    places: Places = None,
    reviewed: Annotated[
        bool, typer.Option("--reviewed", help=_("It was reviewed and still holds."))
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
        entry = opened.golden.update(golden_id, fields, origin="rag golden update", reason=reason)
        _warn_of_withdrawn(opened.golden)
    message = _("Question stored: {golden_id}").format(golden_id=entry.golden_id)
    conclude(message, entry.to_json(), as_json=as_json)


@command(app, "delete", _("Deletes questions, after asking."))
def delete(
    golden_ids: GoldenIds,
    reason: Reason = "",
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete questions after confirmation by a person."""
    with application() as opened:
        found = (opened.golden.find(each)[0] for each in golden_ids)
        entries: list[GoldenEntry] = list(dict.fromkeys(found))
        about = [f"{str(entry.golden_id)[:ID_CHARS]}  {entry.query}" for entry in entries]
        question = _("To delete: {count}. Go on? (y/N)").format(count=len(entries))
        require_consent(question, yes=yes, about=about)
        opened.golden.delete(entries, origin="rag golden delete", reason=reason)
        _warn_of_withdrawn(opened.golden)
    message = _("Questions deleted: {count}. They stay in the history.").format(count=len(entries))
    conclude(message, {"deleted": [entry.golden_id for entry in entries]}, as_json=as_json)


def _warn_of_withdrawn(golden: "Golden") -> None:
    """Say how many questions are still asked although they were removed or changed."""
    if withdrawn := len(golden.withdrawn()):
        warn(
            _(
                "Questions removed or changed without --reason since the last promotion: {count}. "
                "They are still asked, as they were, until the next one."
            ).format(count=withdrawn)
        )


def _tell_changes(
    message: str,
    changes: "Sequence[GoldenChange]",
    others: Mapping[str, Any],
    *,
    as_json: bool,
    **values: object,
) -> None:
    from rag_resources.core.golden_changes import Operation, count_changes

    counts = count_changes(changes)
    told = {
        "inserted": counts[Operation.INSERT],
        "updated": counts[Operation.UPDATE],
        "deleted": counts[Operation.DELETE],
    }
    conclude(message.format(**told, **values), {**told, **others}, as_json=as_json)


def _tell_left_out(others: Mapping[str, Sequence[str]]) -> None:
    """Name on stderr the questions of a file that are not imported, and keys that are not read."""
    reasons = {
        "kept": _("Left as a person wrote them (--replace takes those of the file): {count}."),
        "leftOut": _("Deleted by a person, so not imported (--replace does): {count}."),
        "orphaned": _("Name deleted notes, so not imported: {count}."),
        "drafts": _("Drafts without an answer, so not imported: {count}."),
    }
    for name, reason in reasons.items():
        if queries := others.get(name):
            note(reason.format(count=len(queries)))
            for query in queries:
                note(f"  - {query}")
    for problem in others["unknownKeys"]:
        warn(problem)


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


def _place(option: str) -> dict[str, str]:
    """Parse `NOTE=TEXT`; the text may contain further equals signs."""
    note, equals, text = option.partition("=")
    if not (note.strip() and equals):
        raise InvalidParameterError(
            _("--place “{value}”: NOTE=TEXT is expected.").format(value=option)
        )
    return {"note": note.strip(), "text": text}
