"""`rag glossary …`: the abbreviations in questions and their expansions."""

from typing import Annotated

import typer

from rag_resources.cli.output import JsonOption, conclude, console, table, write_json
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.messages import Message

app = group("glossary", Message.HELP_GLOSSARY)

AbbreviationArgument = Annotated[
    str, typer.Argument(metavar="ABREVIATURA", help=Message.HELP_ABBREVIATION)
]


@command(app, "list", Message.HELP_GLOSSARY_LIST)
def list_entries(as_json: JsonOption = False) -> None:
    """List the abbreviations."""
    with application() as opened:
        entries = opened.glossary.entries()
    if as_json:
        rows = [{"abbreviation": e.abbreviation, "expansion": e.expansion} for e in entries]
        write_json({"glossary": rows})
        return
    columns = (Message.COLUMN_ABBREVIATION, Message.COLUMN_EXPANSION)
    console().print(table(columns, [(e.abbreviation, e.expansion) for e in entries], prose=True))


@command(app, "add", Message.HELP_GLOSSARY_ADD)
def add(
    abbreviation: AbbreviationArgument,
    expansion: Annotated[str, typer.Argument(metavar="SIGNIFICADO", help=Message.HELP_EXPANSION)],
    as_json: JsonOption = False,
) -> None:
    """Add or replace an abbreviation."""
    with application() as opened:
        entry = opened.glossary.add(abbreviation, expansion)
    fields = {"abbreviation": entry.abbreviation, "expansion": entry.expansion}
    conclude(Message.GLOSSARY_WRITTEN.format(**fields), fields, as_json=as_json)


@command(app, "remove", Message.HELP_GLOSSARY_REMOVE)
def remove(abbreviation: AbbreviationArgument, as_json: JsonOption = False) -> None:
    """Remove an abbreviation."""
    with application() as opened:
        opened.glossary.remove(abbreviation)
    fields = {"abbreviation": abbreviation}
    conclude(Message.GLOSSARY_REMOVED.format(**fields), fields | {"removed": True}, as_json=as_json)
