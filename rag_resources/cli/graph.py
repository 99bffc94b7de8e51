"""`rag graph …`: shows people the causal graph, and records their decisions about it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import (
    JsonOption,
    conclude,
    console,
    progress,
    say,
    table,
    write_json,
    write_picture,
)
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_resources.application.graph import Graph
    from rag_resources.graph.links import Proposal
    from rag_resources.graph.people import Neighbourhood

SUGGESTIONS = 20
REVIEWED = 20
ASKED = 100

app = group("graph", Message.HELP_GRAPH)

Name = Annotated[str, typer.Argument(metavar="ENTIDAD", help=Message.HELP_GRAPH_ENTITY)]
Other = Annotated[str, typer.Argument(metavar="OTRA", help=Message.HELP_GRAPH_ENTITY)]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, help=Message.HELP_GOLDEN_LIMIT)]
No = Annotated[bool, typer.Option("--no", help=Message.HELP_GRAPH_NO)]
Undo = Annotated[bool, typer.Option("--undo", help=Message.HELP_GRAPH_UNDO)]


@command(app, "show", Message.HELP_GRAPH_SHOW)
def show(
    name: Name,
    picture: Annotated[
        Path | None, typer.Option("--png", metavar="FICHERO", help=Message.HELP_GRAPH_PNG)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what surrounds an entity, as text or also as a picture."""
    with application() as opened:
        found = opened.graph.neighbourhood(name)
    if picture is not None:
        from rag_resources.reporting.plots.neighbourhood import draw_neighbourhood

        write_picture(picture, draw_neighbourhood(found))
    if as_json:
        write_json(_as_json(found))
        return
    _show(found)


@command(app, "status", Message.HELP_GRAPH_STATUS)
def status(as_json: JsonOption = False) -> None:
    """Show the size of the graph, how well it connects notes, and how often it is right."""
    with application() as opened:
        overview = opened.graph.overview()
    found, checked, months = overview.shape, overview.precision, overview.months
    if as_json:
        write_json(
            {
                **_fields(found),
                "orphanShare": found.orphan_share,
                "judged": checked.judged,
                "right": checked.good,
                "months": [_fields(item) | {"month": item.month.isoformat()} for item in months],
                "problems": [str(problem) for problem in overview.problems],
            }
        )
        return
    say(overview.in_words)
    say(overview.precision.in_words)
    for problem in overview.problems:
        say(problem)
    columns = (
        Message.COLUMN_MONTH,
        Message.COLUMN_NOTES,
        Message.COLUMN_MENTIONS,
        Message.COLUMN_STATEMENTS,
    )
    rows = [
        (f"{item.month:%Y-%m}", str(item.notes), str(item.mentions), str(item.statements))
        for item in months
    ]
    if rows:
        console().print(table(columns, rows))


@command(app, "review", Message.HELP_GRAPH_REVIEW)
def review(
    limit: Limit = REVIEWED,
    links: Annotated[bool, typer.Option("--links", help=Message.HELP_GRAPH_REVIEW_LINKS)] = False,
    as_json: JsonOption = False,
) -> None:
    """Let a person judge statements, or links that a language model proposes, one by one."""
    with application() as opened:
        if links:
            _review_links(opened.graph, limit, as_json=as_json)
        else:
            _review_statements(opened.graph, limit, as_json=as_json)


def _review_statements(graph: "Graph", limit: int, *, as_json: bool) -> None:
    listed = graph.to_review(limit=limit)
    if as_json:
        write_json(
            [{**_fields(item), "id": str(item.id), "note_id": str(item.note_id)} for item in listed]
        )
        return
    for item in listed:
        say(f"\n{item.note}\n{item.content}\n")
        say(
            Message.GRAPH_STATEMENT.format(
                cause=item.cause, relation=item.relation, effect=item.effect, marker=item.marker
            )
        )
        answer = _answer()
        if answer is None:
            break
        if answer:
            graph.record_review(item, is_right=answer in Message.WORDS_YES.split())
    say(graph.precision().in_words)


def _review_links(graph: "Graph", limit: int, *, as_json: bool) -> None:
    from rag_resources.core.causal import Relation

    listed = graph.proposals(limit=limit)
    if as_json:
        _write_proposals(listed)
        return
    confirmed = refused = 0
    for item in listed:
        say(f"\n{item.cause_note}\n{item.cause_content}")
        say(f"\n{item.effect_note}\n{item.effect_content}\n")
        say(
            Message.GRAPH_STATEMENT.format(
                cause=item.cause, relation=item.relation, effect=item.effect, marker=item.model
            )
        )
        say(Message.GRAPH_PROPOSAL_REASON.format(reason=item.reason, confidence=item.confidence))
        answer = _answer()
        if answer is None:
            break
        if answer:
            is_right = answer in Message.WORDS_YES.split()
            ends = (str(item.cause_id), str(item.effect_id))
            graph.decide_link(*ends, Relation(item.relation), confirmed=is_right)
            confirmed, refused = confirmed + is_right, refused + (not is_right)
    say(Message.GRAPH_LINKS_REVIEWED.format(confirmed=confirmed, refused=refused))


@command(app, "aliases", Message.HELP_GRAPH_ALIASES)
def aliases(limit: Limit = SUGGESTIONS, as_json: JsonOption = False) -> None:
    """List pairs of names that may mean the same; nothing is changed."""
    with application() as opened:
        found = opened.graph.suggest_aliases(limit=limit)
    if as_json:
        write_json(
            [
                {
                    "aliasId": str(item.alias.id),
                    "alias": item.alias.name,
                    "aliasNotes": item.alias_notes,
                    "entityId": str(item.entity.id),
                    "entity": item.entity.name,
                    "entityNotes": item.entity_notes,
                }
                for item in found
            ]
        )
        return
    columns = (
        Message.COLUMN_ALIAS,
        Message.COLUMN_NOTES,
        Message.COLUMN_ENTITY,
        Message.COLUMN_NOTES,
    )
    rows = []
    for item in found:
        # Only their ids distinguish a name and a tag of the same words.
        alike = item.alias.name.casefold() == item.entity.name.casefold()
        ends = [
            f"{end.name} ({end.id})" if alike else end.name for end in (item.alias, item.entity)
        ]
        rows.append((ends[0], str(item.alias_notes), ends[1], str(item.entity_notes)))
    console().print(table(columns, rows))
    say(Message.GRAPH_ALIAS_HOW)


@command(app, "alias", Message.HELP_GRAPH_ALIAS)
def alias(
    name: Name,
    other: Other,
    no: No = False,
    undo: Undo = False,
    as_json: JsonOption = False,
) -> None:
    """Record that a name stands for another, or that it does not, or withdraw that."""
    with application() as opened:
        if undo:
            _conclude_undone(opened.graph.withdraw_alias(name, other), as_json=as_json)
            return
        one, two = opened.graph.decide_alias(name, other, confirmed=not no)
    message = Message.GRAPH_ALIAS_REJECTED if no else Message.GRAPH_ALIAS_CONFIRMED
    told = message.format(alias=one.name, entity=two.name)
    fields = {"alias": one.name, "entity": two.name, "confirmed": not no}
    conclude(told, fields, as_json=as_json)


@command(app, "propose", Message.HELP_GRAPH_PROPOSE)
def propose(limit: Limit = ASKED, as_json: JsonOption = False) -> None:
    """Ask the language model which events of different notes are cause and effect."""
    with (
        application() as opened,
        progress(Message.GRAPH_LINKS_PROGRESS, total=limit) as advance,
    ):
        report = opened.graph.propose_links(limit=limit, progress=advance)
    fields = _fields(report)
    conclude(Message.GRAPH_LINKS_ASKED.format(**fields), fields, as_json=as_json)


@command(app, "links", Message.HELP_GRAPH_LINKS)
def links(limit: Limit = SUGGESTIONS, as_json: JsonOption = False) -> None:
    """List the links that a language model proposes; nothing is changed."""
    with application() as opened:
        found = opened.graph.proposals(limit=limit)
    if as_json:
        _write_proposals(found)
        return
    columns = (
        Message.COLUMN_EVENT_CAUSE,
        Message.COLUMN_NOTE,
        Message.COLUMN_RELATION,
        Message.COLUMN_EVENT_EFFECT,
        Message.COLUMN_NOTE,
        Message.COLUMN_CONFIDENCE,
    )
    rows = [
        (
            item.cause,
            item.cause_note,
            item.relation,
            item.effect,
            item.effect_note,
            f"{item.confidence:.2f}",
        )
        for item in found
    ]
    console().print(table(columns, rows, prose=True))
    say(Message.GRAPH_LINKS_HOW)


@command(app, "link", Message.HELP_GRAPH_LINK)
def link(
    cause: Name,
    effect: Other,
    relation: Annotated[
        str, typer.Option("--relation", metavar="TIPO", help=Message.HELP_GRAPH_RELATION)
    ] = "CAUSES",
    no: No = False,
    undo: Undo = False,
    as_json: JsonOption = False,
) -> None:
    """Record that an event is, or is not, the cause of an event of another note, or undo that."""
    from rag_resources.core.causal import Relation

    if relation not in set(Relation):
        known = ", ".join(Relation)
        raise InvalidParameterError(Message.GRAPH_RELATION.format(value=relation, known=known))
    with application() as opened:
        if undo:
            _conclude_undone(opened.graph.withdraw_link(cause, effect), as_json=as_json)
            return
        one, two = opened.graph.decide_link(cause, effect, Relation(relation), confirmed=not no)
    fields = {"cause": one.name, "effect": two.name, "relation": relation}
    message = Message.GRAPH_LINK_REJECTED if no else Message.GRAPH_LINKED
    conclude(message.format(**fields), fields | {"confirmed": not no}, as_json=as_json)


def _conclude_undone(done: bool, *, as_json: bool) -> None:
    message = Message.GRAPH_UNDONE if done else Message.GRAPH_NOTHING_TO_UNDO
    conclude(message, {"undone": done}, as_json=as_json)


def _fields(found: Any) -> dict[str, Any]:
    """Return the fields of a dataclass with slots."""
    from dataclasses import asdict

    return asdict(found)


def _answer() -> str | None:
    """Ask a person: a letter for right (`WORDS_YES`) or wrong, empty to skip; None at the end."""
    typer.echo(Message.GRAPH_ASK, nl=False)
    line = sys.stdin.readline()
    return line.strip().lower()[:1] if line else None


def _write_proposals(found: "Sequence[Proposal]") -> None:
    write_json(
        [
            {
                "causeId": str(item.cause_id),
                "cause": item.cause,
                "causeNote": item.cause_note,
                "causeChunkId": str(item.cause_chunk_id),
                "relation": item.relation,
                "effectId": str(item.effect_id),
                "effect": item.effect,
                "effectNote": item.effect_note,
                "effectChunkId": str(item.effect_chunk_id),
                "confidence": item.confidence,
                "reason": item.reason,
                "model": item.model,
                "version": item.version,
                "judgedAt": item.judged_at.isoformat(),
            }
            for item in found
        ]
    )


def _show(found: "Neighbourhood") -> None:
    from rag_resources.core.mentions import EntityKind

    kinds = {
        EntityKind.NAME: Message.ENTITY_NAME,
        EntityKind.TAG: Message.ENTITY_TAG,
        EntityKind.DATE: Message.ENTITY_DATE,
        EntityKind.EVENT: Message.ENTITY_EVENT,
    }
    entity = found.entity
    kind = kinds[EntityKind(entity.kind)]
    say(Message.GRAPH_ENTITY.format(name=entity.name, kind=kind, id=entity.id))
    if found.notes:
        columns = (Message.COLUMN_NOTE, Message.COLUMN_DATE, Message.COLUMN_TITLE)
        rows = [(item.note, f"{item.created_at:%Y-%m-%d}", item.title) for item in found.notes]
        console().print(table(columns, rows, prose=True))
    if found.company:
        say(
            Message.GRAPH_COMPANY.format(
                names=", ".join(f"{name} ({count})" for name, count in found.company)
            )
        )
    for item in found.statements:
        say(
            Message.GRAPH_STATEMENT.format(
                cause=item.cause,
                relation=item.relation,
                effect=item.effect,
                marker=item.marker or Message.GRAPH_BY_PERSON,
            )
        )


def _as_json(found: "Neighbourhood") -> dict[str, Any]:
    return {
        "id": str(found.entity.id),
        "kind": found.entity.kind,
        "name": found.entity.name,
        "notes": [
            {
                "note": item.note,
                "title": item.title,
                "createdAt": item.created_at.isoformat(),
                "mentions": item.mentions,
            }
            for item in found.notes
        ],
        "company": [{"name": name, "chunks": chunks} for name, chunks in found.company],
        "statements": [
            {
                "causeId": str(item.cause_id),
                "cause": item.cause,
                "relation": item.relation,
                "effectId": str(item.effect_id),
                "effect": item.effect,
                "marker": item.marker or None,
            }
            for item in found.statements
        ],
    }
