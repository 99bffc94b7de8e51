"""Reads the status of a migration, with the state of the evaluations that it quotes."""

from dataclasses import replace

from rag_resources.configurations import load_configurations
from rag_resources.core.chunking_version import chunking_hash
from rag_resources.database.pool import Database
from rag_resources.evaluation.evidence import count_and_read_evidence
from rag_resources.settings import Settings
from rag_resources.store.migration_status import MigrationStatus, read_migration_status


def read_status(database: Database, settings: Settings) -> MigrationStatus:
    """Return the progress of every month and model, with quality, errors and pace."""
    with database.snapshot() as connection:
        status = read_migration_status(
            connection,
            settings.embedding_models,
            chunking_hash=chunking_hash(settings.chunking),
        )
    quoted = [item for item in (status.evaluation, status.baseline) if item]
    with database.transaction() as connection:
        evidence = count_and_read_evidence(
            connection,
            quoted,
            load_configurations(settings.configuration_folders),
            gate=settings.gate,
            settings=settings.search,
        )
    return replace(status, evidence=evidence)
