"""Rows of `content_settings`, and what kinds of content a database holds.

`ingestion.content_settings` decides what they mean for a run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.types.json import Jsonb

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries

ALL_TENANTS = ""
"""The tenant name of settings that apply to every tenant."""

SettingKey = tuple[str, str]
"""Tenant and name of a setting."""


@dataclass(frozen=True, slots=True)
class HeldContent:
    """What kinds of content a database holds.

    Attributes:
        sample: The tenant has notes of the sample.
        unnamed: The tenant has notes of the source with the default name.
        others: Some tenant has notes that are not the sample's, not counting documents.
        golden: There are golden questions.
    """

    sample: bool
    unnamed: bool
    others: bool
    golden: bool


def list_content_settings(connection: Connection) -> dict[SettingKey, Any]:
    """Return every stored setting by tenant and name."""
    rows = queries().list_content_settings(connection)
    return {(row.tenant_id, row.name): row.value for row in rows}


def write_content_settings(connection: Connection, values: Mapping[SettingKey, Any]) -> None:
    """Store settings, in a transaction that called `lock_content_settings`."""
    queries().write_content_settings(
        connection,
        [
            {"tenant": tenant, "name": name, "value": Jsonb(value)}
            for (tenant, name), value in values.items()
        ],
    )


def lock_content_settings(connection: Connection) -> None:
    """Keep others from changing the stored settings until commit."""
    queries().lock_content_settings(connection)


def held_content(connection: Connection, *, tenant: str, sample: str, unnamed: str) -> HeldContent:
    """Return what kinds of content there are; `sample` and `unnamed` are names of sources."""
    row = queries().held_sources(connection, tenant=tenant, sample=sample, unnamed=unnamed)
    return HeldContent(row.sample, row.unnamed, row.others, row.golden)


def list_sources(connection: Connection) -> dict[str, int]:
    """Count the notes of every source, most notes first."""
    return {row.source: row.notes for row in queries().list_sources(connection)}


def move_notes(
    connection: Connection,
    *,
    tenant: str,
    old_source: str,
    new_source: str,
    contents: Sequence[tuple[str, bytes]],
) -> int:
    """Move notes from one source to another; their ids and everything derived from them stay.

    Args:
        connection: In a transaction.
        tenant: The tenant of the notes.
        old_source: The source they are in.
        new_source: The source they move to.
        contents: External id and SHA-256 of the content of each; a note with other content is not
            moved.

    Returns:
        How many were moved.
    """
    moved: int = queries().move_notes(
        connection,
        tenant=tenant,
        old_source=old_source,
        new_source=new_source,
        external_ids=[external_id for external_id, _ in contents],
        hashes=[content_hash for _, content_hash in contents],
    )
    return moved
