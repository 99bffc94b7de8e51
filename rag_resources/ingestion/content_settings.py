"""Compares the present settings with those that a database was filled with.

Settings that decide a database's content are stored in it when first used. After that, a person
must accept other values. Which source a run reads is decided in `content_source`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_resources.core.errors import SettingsChangedError
from rag_resources.core.messages import Message
from rag_resources.database.pool import Connection, Database
from rag_resources.ingestion.content_source import (
    SAMPLE_GOLDEN,
    ContentSource,
    choose_source,
    describe_sources,
    hold_sample,
)
from rag_resources.settings import SAMPLE_SOURCE, Settings
from rag_resources.store.content_settings import (
    ALL_TENANTS,
    SettingKey,
    list_content_settings,
    lock_content_settings,
    write_content_settings,
)

NOTES_SETTINGS = ("TENANT", "NOTES_SOURCE", "NOTES_SOURCE_NAME")
DOCUMENTS_SETTINGS = ("TENANT", "DOCUMENTS_SOURCE", "DOCUMENTS_SOURCE_NAME")
GOLDEN_SETTINGS = ("TENANT", "NOTES_SOURCE", "GOLDEN_SOURCE")
CHUNKING_SETTINGS = ("CHUNKING",)
NOTE_MODEL_SETTINGS = ("NOTE_EMBEDDING_MODEL",)
MODEL_SETTINGS = ("EMBEDDING_MODELS",)
ALL_SETTINGS = (
    *NOTES_SETTINGS,
    "GOLDEN_SOURCE",
    *DOCUMENTS_SETTINGS[1:],
    *CHUNKING_SETTINGS,
    *MODEL_SETTINGS,
    *NOTE_MODEL_SETTINGS,
)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A stored setting and its present value, both as shown to people."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return Message.SETTING_CHANGED.format(name=self.name, before=self.before, after=self.after)


def require_settings(
    database: Database, settings: Settings, names: Collection[str], *, sample: bool = False
) -> ContentSource:
    """Return the source a run reads; refuse settings that differ from the stored ones.

    Settings that are used for the first time are stored.

    Args:
        database: Open.
        settings: The present settings.
        names: The settings that affect what the caller writes.
        sample: Whether a person asked for the sample.

    Raises:
        SettingsChangedError: Some settings differ; all are named.
    """
    with database.transaction() as connection:
        source = choose_source(connection, settings, sample=sample)
        changes = pending_changes(connection, settings, source, names)
        if changes:
            raise changed_error(changes)
        accept_settings(connection, settings, source, names)
    return source


def require_model(database: Database, settings: Settings, model: str) -> None:
    """Check that the database was filled with this model, among others.

    Raises:
        SettingsChangedError: It was not.
    """
    with database.transaction() as connection:
        stored = list_content_settings(connection).get((ALL_TENANTS, "EMBEDDING_MODELS"))
        if stored is not None and model not in stored:
            change = SettingChange(
                "EMBEDDING_MODELS", _shown(stored), _shown(list(settings.embedding_models))
            )
            raise changed_error([change])
        if stored is None:
            source = choose_source(connection, settings)
            accept_settings(connection, settings, source, MODEL_SETTINGS)


def changed_error(changes: Collection[SettingChange]) -> SettingsChangedError:
    """Return the error that names these changes.

    A change of models alone mixes nothing. A tenant without anything may be misspelt.
    """
    if all(change.name in MODEL_SETTINGS for change in changes):
        headline = Message.SETTINGS_MODELS_CHANGED
    elif any(change.name == "TENANT" for change in changes):
        headline = Message.SETTINGS_TENANT_UNKNOWN
    else:
        headline = Message.SETTINGS_CHANGED
    return SettingsChangedError(headline, [str(change) for change in changes])


def pending_changes(
    connection: Connection,
    settings: Settings,
    source: ContentSource,
    names: Collection[str] = ALL_SETTINGS,
) -> list[SettingChange]:
    """Return the settings that differ from the stored ones.

    Args:
        connection: In a transaction.
        settings: The present settings.
        source: The source that these settings select.
        names: The settings to compare.
    """
    stored = list_content_settings(connection)
    changes = _compare(stored, _values(settings, source, names))
    if "NOTES_SOURCE" in names and not source.asked_for:
        changes += _mixture(connection, settings, source, stored)
    return changes


def stored_settings(connection: Connection, tenant: str) -> dict[str, str]:
    """Return the stored settings that concern a tenant, as shown to people."""
    stored = list_content_settings(connection)
    return {
        name: _shown(value)
        for (owner, name), value in stored.items()
        if owner in {tenant, ALL_TENANTS}
    }


def ingestion_changes(
    connection: Connection, settings: Settings, path: Path, *, source: str, named: bool
) -> list[SettingChange]:
    """Return the changes that a person should accept before the notes of a path are stored.

    Args:
        connection: In a transaction.
        settings: The present settings.
        path: The path that the person gave.
        source: The source under which its notes are stored.
        named: Whether the person also named the source.
    """
    stored = list_content_settings(connection)
    now: dict[SettingKey, Any] = {(settings.tenant, "TENANT"): settings.tenant}
    if not named and source != SAMPLE_SOURCE:
        now[settings.tenant, "NOTES_SOURCE_NAME"] = source
    changes = _compare(stored, now)
    read = ContentSource(path, source, None)
    if SAMPLE_SOURCE in {source, stored.get((settings.tenant, "NOTES_SOURCE"))}:
        changes += _compare(stored, _values(settings, read, ["NOTES_SOURCE"]))
    return changes + _mixture(connection, settings, read, stored)


def accept_tenant(connection: Connection, tenant: str) -> None:
    """Record that a person wants the database to hold content of this tenant, among others."""
    lock_content_settings(connection)
    write_content_settings(connection, {(tenant, "TENANT"): tenant})


def accept_ingestion(connection: Connection, settings: Settings, *, source: str) -> None:
    """Record that the database holds notes of this tenant, and not only the sample."""
    key = (settings.tenant, "NOTES_SOURCE")
    stored = list_content_settings(connection)
    values: dict[SettingKey, Any] = {(settings.tenant, "TENANT"): settings.tenant}
    if source != SAMPLE_SOURCE and stored.get(key) == SAMPLE_SOURCE:
        values[key] = None
    lock_content_settings(connection)
    write_content_settings(connection, values)


def accept_settings(
    connection: Connection,
    settings: Settings,
    source: ContentSource,
    names: Collection[str] = ALL_SETTINGS,
) -> None:
    """Store the present settings in the database; arguments as in `pending_changes`.

    A first path that does not exist is not stored: nothing comes from there, and the mended one
    must not be refused for it.
    """
    stored = list_content_settings(connection)
    new = {
        key: value
        for key, value in _values(settings, source, names).items()
        if stored.get(key) != value and not (stored.get(key) is None and _is_missing(key[1], value))
    }
    if new:
        lock_content_settings(connection)
        write_content_settings(connection, new)


def _values(
    settings: Settings, source: ContentSource, names: Collection[str]
) -> dict[SettingKey, Any]:
    """Return the values that decide the content; sources that a run does not read are left out."""
    own: dict[str, Any] = {"TENANT": settings.tenant}
    if source.notes and not source.asked_for:
        own["NOTES_SOURCE"] = SAMPLE_SOURCE if source.is_sample else str(source.notes)
        own |= {} if source.is_sample else {"NOTES_SOURCE_NAME": source.name}
    elif settings.names_no_source and not source.asked_for:
        own["NOTES_SOURCE"] = None
    if source.golden and not source.asked_for:
        of_sample = source.golden == SAMPLE_GOLDEN
        own["GOLDEN_SOURCE"] = SAMPLE_SOURCE if of_sample else str(source.golden)
    if settings.documents_source and not source.asked_for:
        own["DOCUMENTS_SOURCE"] = str(settings.documents_source)
        own["DOCUMENTS_SOURCE_NAME"] = settings.documents_source_name
    shared = {
        "CHUNKING": settings.chunking.hashed,
        "EMBEDDING_MODELS": sorted(settings.embedding_models),
        "NOTE_EMBEDDING_MODEL": settings.note_embedding_model,
    }
    return {
        (tenant, name): value
        for tenant, values in ((settings.tenant, own), (ALL_TENANTS, shared))
        for name, value in values.items()
        if name in names
    }


def _mixture(
    connection: Connection,
    settings: Settings,
    source: ContentSource,
    stored: Mapping[SettingKey, Any],
) -> list[SettingChange]:
    """Return a change if the sample would mix with other notes and no stored source shows it."""
    if stored.get((settings.tenant, "NOTES_SOURCE")) is not None or source.notes is None:
        return []
    held = hold_sample(connection, settings.tenant)
    if source.is_sample and held.others:
        return [_sources_change(describe_sources(connection), Message.SETTING_SAMPLE)]
    if not source.is_sample and held.sample and not held.others:
        return [
            _sources_change(Message.SETTING_SAMPLE, _shown_now("NOTES_SOURCE", str(source.notes)))
        ]
    return []


def _sources_change(before: str, after: str) -> SettingChange:
    return SettingChange("NOTES_SOURCE", before, after)


def _compare(
    stored: Mapping[SettingKey, Any], now: Mapping[SettingKey, Any]
) -> list[SettingChange]:
    changes = []
    for (tenant, name), value in now.items():
        before = stored.get((tenant, name))
        if name == "TENANT":
            others = sorted(known for known, other in stored if other == "TENANT")
            if before is None and others:
                changes.append(SettingChange(name, _shown(others), _shown(value)))
        elif before is not None and before != value:
            changes.append(SettingChange(name, _shown(before), _shown_now(name, value)))
    return changes


def _shown_now(name: str, value: Any) -> str:
    """Return a present value as shown to people; says so if it is a path that does not exist."""
    if _is_missing(name, value):
        return Message.SETTING_PATH_MISSING.format(path=value)
    return _shown(value)


def _is_missing(name: str, value: Any) -> bool:
    """Whether a setting is a path of this machine and nothing is there."""
    is_path = name in _PATHS and isinstance(value, str) and value != SAMPLE_SOURCE
    return is_path and "://" not in value and not Path(value).exists()


_PATHS = ("NOTES_SOURCE", "GOLDEN_SOURCE", "DOCUMENTS_SOURCE")


def _shown(value: Any) -> str:
    if value is None:
        return Message.SETTING_NOTHING
    if value == SAMPLE_SOURCE:
        return Message.SETTING_SAMPLE
    if isinstance(value, list):
        return ", ".join(f"«{item}»" for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return f"«{value}»"
