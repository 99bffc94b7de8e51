"""Wires settings, database, models and pipeline together, for the command line and for Dagster."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from rag_resources.configurations import load_configurations
from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    parse_retrieval,
)
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.messages import Message
from rag_resources.database.locate import open_database
from rag_resources.database.pool import Database
from rag_resources.providers.protocols import Embedder
from rag_resources.providers.registry import build_embedder
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import Settings
from rag_resources.store.evaluations import current_promotion


@dataclass(frozen=True)
class Application:
    """An open database with everything that works on it."""

    settings: Settings
    database: Database

    def embedder(self, model: str) -> Embedder:
        """Return the embedder of a model, one per process."""
        return build_embedder(model, ollama_host=self.settings.ollama_host)

    @cached_property
    def pipeline(self) -> RetrievalPipeline:
        """The retrieval pipeline over the settings' tenant."""
        return RetrievalPipeline(
            self.database,
            embedder=self.embedder,
            tenant=self.settings.tenant,
            note_model=self.settings.note_embedding_model,
        )

    @cached_property
    def configurations(self) -> dict[str, NamedConfiguration]:
        """Every named configuration, by name."""
        return load_configurations(self.settings.configuration_folders)

    def configuration(self, name: str) -> NamedConfiguration:
        """Return a named configuration.

        Raises:
            InvalidConfigurationError: There is none of that name; the message lists all.
        """
        if name not in self.configurations:
            known = ", ".join(self.configurations)
            raise InvalidConfigurationError(
                Message.CONFIGURATION_NOT_FOUND.format(name=name, known=known), []
            )
        return self.configurations[name]

    def serving(self) -> RetrievalConfig:
        """Return the configuration that serves: the promoted one, else the defaults.

        Raises:
            InvalidConfigurationError: The promoted one, as stored, is no longer valid.
        """
        with self.database.transaction() as connection:
            promotion = current_promotion(connection)
        if promotion is None:
            return RetrievalConfig()
        return parse_retrieval(promotion.config, origin=promotion.configuration)


@contextmanager
def open_application(settings: Settings, *, min_connections: int = 1) -> Iterator[Application]:
    """Open the database the settings name, migrated, and close it at the end.

    Raises:
        DatabaseError: It cannot be started, reached or migrated.
    """
    database = open_database(settings, min_connections=min_connections)
    try:
        yield Application(settings, database)
    finally:
        database.close()
