"""`rag golden history|drift|suggest`: the golden dataset's history and review."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.feedback import ID_CHARS
from rag_resources.cli.output import JsonOption, console, say, table, write_json
from rag_resources.cli.session import application
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.core.golden_changes import GoldenChange, GoldenVersion

SHOWN_VERSIONS = 20
SUGGESTIONS = 20

Limit = Annotated[int, typer.Option("--limit", metavar="N", help=Message.HELP_GOLDEN_LIMIT)]


def history(limit: Limit = SHOWN_VERSIONS, as_json: JsonOption = False) -> None:
    """Show the newest versions of the dataset."""
    from rag_resources.core.golden_changes import Operation

    _check(limit)
    with application() as opened:
        versions = opened.golden.versions()[::-1]
    if as_json:
        write_json({"versions": [_version_json(version) for version in versions[:limit]]})
        return
    columns = (
        Message.COLUMN_VERSION,
        Message.COLUMN_CHANGED,
        Message.COLUMN_ORIGIN,
        Message.COLUMN_INSERTED,
        Message.COLUMN_UPDATED_COUNT,
        Message.COLUMN_DELETED,
        Message.COLUMN_QUERIES,
        Message.COLUMN_HASH,
    )
    rows = [
        (
            str(version.number),
            f"{version.changed_at:%Y-%m-%d %H:%M %Z}",
            version.origin or Message.GOLDEN_BY_HAND.format(user=version.changed_by),
            *(str(version.count(operation)) for operation in Operation),
            str(len(version.entries)),
            version.golden_hash,
        )
        for version in versions[:limit]
    ]
    console().print(table(columns, rows))
    if versions[limit:]:
        say(Message.GOLDEN_OLDER.format(count=len(versions[limit:])))


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


def suggest(limit: Limit = SUGGESTIONS, as_json: JsonOption = False) -> None:
    """Show notes to be judged; with JSON, as a file to edit and import."""
    _check(limit)
    with application() as opened:
        candidates = opened.golden.suggest(limit=limit)
    if as_json:
        write_json({"entries": candidates})
        return
    if not candidates:
        say(Message.GOLDEN_NO_SUGGESTIONS)
        return
    columns = (
        Message.COLUMN_QUESTION,
        Message.COLUMN_NOTE,
        Message.COLUMN_SNIPPET,
        Message.COLUMN_CONFIGURATIONS,
    )
    rows = [row for candidate in candidates for row in _rows(candidate)]
    console().print(table(columns, rows, prose=True))
    say(Message.GOLDEN_SUGGESTED)
    if any("asked" in candidate for candidate in candidates):
        say(Message.GOLDEN_ASKED)


def _rows(candidate: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return a row for each note to be judged; one without notes if there are none."""
    query, asked = candidate["query"], candidate.get("asked")
    why = None
    if asked:
        template = Message.GOLDEN_ASKED_DOWN if asked["thumbsDown"] else Message.GOLDEN_ASKED_MISS
        why = template.format(times=asked["times"], answer_id=asked["answerId"][:ID_CHARS])
    return [
        (
            query,
            "\n".join(part for part in (found["name"], found["title"]) if part),
            found["snippet"],
            why or ", ".join(found["configurations"]),
        )
        for found in candidate["candidateNotes"]
    ] or [(query, "–", "–", why or "–")]


def _check(limit: int) -> None:
    if limit < 1:
        raise InvalidParameterError(Message.GOLDEN_LIMIT.format(value=limit))


def _version_json(version: "GoldenVersion") -> dict[str, Any]:
    return {
        "version": version.number,
        "changedAt": version.changed_at.isoformat(),
        "changedBy": version.changed_by,
        "origin": version.origin,
        "questions": len(version.entries),
        "goldenHash": version.golden_hash,
        "changes": [_change_json(change) for change in version.changes],
    }


def _change_json(change: "GoldenChange") -> dict[str, Any]:
    return {
        "operation": change.operation.value,
        "before": change.before.to_json() if change.before else None,
        "after": change.after.to_json() if change.after else None,
    }
