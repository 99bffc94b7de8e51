"""`rag settings show|accept`, and the confirmation of changed settings in other commands."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rag_resources.cli.output import (
    JsonOption,
    conclude,
    confirmed,
    console,
    note,
    say,
    table,
    warn,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from rag_resources.application import Application
    from rag_resources.ingestion.content_settings import SettingChange
    from rag_resources.ingestion.content_source import ContentSource
    from rag_resources.programs import Program

app = group("settings", Message.HELP_SETTINGS)

AcceptOption = Annotated[bool, typer.Option("--accept-settings", help=Message.HELP_ACCEPT_SETTINGS)]


@command(app, "show", Message.HELP_SETTINGS_SHOW)
def show(as_json: JsonOption = False) -> None:
    """Show the settings that the database was filled with, and which of them differ now."""
    with application() as opened:
        found = opened.notes.content_settings()
    if as_json:
        changes = [
            {"name": each.name, "before": each.before, "after": each.after}
            for each in found.changes
        ]
        write_json({"settings": found.stored, "changes": changes})
        return
    console().print(
        table(
            (Message.COLUMN_VARIABLE, Message.COLUMN_VALUE),
            list(found.stored.items()),
            prose=True,
        )
    )
    if found.source.notice:
        note(found.source.notice)
    say(Message.SETTINGS_DIFFER if found.changes else Message.SETTINGS_SAME)
    for change in found.changes:
        say(f"  - {change}")


@command(app, "accept", Message.HELP_SETTINGS_ACCEPT)
def accept(as_json: JsonOption = False) -> None:
    """Store the present settings as those the database is filled with."""
    with application() as opened:
        confirm_settings(opened, accept=True)
        off = opened.serving.model_warning()
        names = opened.notes.content_settings().stored.keys()
    if off:
        warn(off)
    if programs := _started_before(names, opened.settings.rag_home):
        named = [Message.SETTINGS_PROGRAM.format(command=p.command, pid=p.pid) for p in programs]
        warn(Message.SETTINGS_RESTART.format(programs=", ".join(named)))
    conclude(Message.SETTINGS_ACCEPTED, {"accepted": True}, as_json=as_json)


def _started_before(names: "Collection[str]", home: "Path") -> "list[Program]":
    """Return the running programs that may go on with earlier values of these settings.

    Those that started since `.env` was written have the present ones, unless the environment of
    this command has others.
    """
    from rag_resources.env_file import env_file_changed_at
    from rag_resources.programs import running_programs

    running, changed_at = running_programs(home), env_file_changed_at()
    if changed_at is None or not os.environ.keys().isdisjoint(names):
        return running
    return [program for program in running if program.started_at < changed_at]


def confirm_settings(
    application: "Application", *, sample: bool = False, accept: bool = False
) -> "ContentSource":
    """Return the source to read; changed settings must be accepted by a person first.

    Args:
        application: Open.
        sample: Whether the person asked for the sample.
        accept: Whether the person has already accepted them.

    Raises:
        SettingsChangedError: The changed settings were not accepted.
    """
    found = application.notes.content_settings(sample=sample)
    accept_changes(found.changes, accept=accept)
    application.notes.accept_settings(found.source)
    return found.source


def accept_changes(changes: "Sequence[SettingChange]", *, accept: bool) -> None:
    """Let a person accept changed settings; on a terminal, ask.

    Raises:
        SettingsChangedError: The changed settings were not accepted.
    """
    if not changes:
        return
    from rag_resources.ingestion.content_settings import changed_error

    about = [str(Message.SETTINGS_DIFFER), *(f"  - {change}" for change in changes)]
    if accept:
        for line in about:
            note(line)
    elif not confirmed(Message.SETTINGS_CONFIRM, about=about, err=True):
        raise changed_error(changes)
