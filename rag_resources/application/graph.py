"""Makes and maintains the causal graph of the notes, one time window at a call."""

from collections.abc import Callable
from dataclasses import dataclass

from rag_resources.core.causal import Relation
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.graph_version import GraphPart
from rag_resources.core.messages import Message
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Database
from rag_resources.graph import links, people
from rag_resources.graph.extractors import Extractor, build_extractor
from rag_resources.graph.proposing import ProposingReport, propose_links
from rag_resources.graph.reading import GraphReport, read_notes
from rag_resources.providers.protocols import LanguageModel
from rag_resources.settings import Settings
from rag_resources.store.graph import (
    GraphGaps,
    count_gaps,
    count_queued,
    forget_orphans,
    is_current,
    register_part,
)


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph of a database. A `window` is a range of notes' creation times."""

    database: Database
    settings: Settings
    language_model: LanguageModel | None = None

    @property
    def extractor(self) -> Extractor:
        """The extractor that the settings name.

        Raises:
            InvalidParameterError: It is a language model, and none is configured.
        """
        return build_extractor(self.settings.graph_extractor, self.language_model)

    def register(self, part: GraphPart) -> None:
        """Register a part of the graph; all notes are read again if its version changed."""
        version = self.extractor.version(part)
        with self.database.transaction() as connection:
            register_part(connection, part, version=version)

    def left(self, part: GraphPart, window: TimeWindow) -> int:
        """Count the notes of a window that wait to be read."""
        with self.database.transaction() as connection:
            return count_queued(connection, part, window)

    def is_done(self, window: TimeWindow) -> bool:
        """Whether no chunked note of a window waits to be read, for any part."""
        versions = {part: self.extractor.version(part) for part in GraphPart}
        with self.database.transaction() as connection:
            return is_current(connection, versions, window)

    def read(
        self, part: GraphPart, window: TimeWindow, *, progress: Callable[[int], None]
    ) -> GraphReport:
        """Read the notes of a window that wait for it."""
        return read_notes(self.database, part, self.extractor, window, progress=progress)

    def clean(self) -> None:
        """Delete the entities that edited notes do not name any more."""
        with self.database.transaction() as connection:
            forget_orphans(connection)

    def gaps(self, part: GraphPart, window: TimeWindow) -> GraphGaps:
        """Count what a part lacks in the notes of a window."""
        with self.database.transaction() as connection:
            return count_gaps(connection, part, window)

    # --- People

    def neighbourhood(self, name: str) -> people.Neighbourhood:
        """Return what surrounds an entity.

        Raises:
            InvalidParameterError: No entity has this name.
        """
        with self.database.transaction() as connection:
            return people.neighbourhood(connection, self.settings.tenant, name)

    def overview(self) -> people.Overview:
        """Return the whole graph, for people."""
        with self.database.transaction() as connection:
            return people.overview(connection, self.settings.tenant)

    def precision(self) -> people.Precision:
        """Return how many of the judged statements were right."""
        with self.database.transaction() as connection:
            return people.precision(connection, self.settings.tenant)

    def to_review(self, *, limit: int) -> list[people.ToReview]:
        """Return statements that nobody has judged: a random sample, the same at every call."""
        with self.database.transaction() as connection:
            return people.to_review(connection, self.settings.tenant, limit=limit)

    def record_review(self, statement: people.ToReview, *, is_right: bool) -> None:
        """Store a person's judgement."""
        with self.database.transaction() as connection:
            people.record_review(connection, self.settings.tenant, statement, is_right=is_right)

    def suggest_aliases(self, *, limit: int) -> list[people.Suggestion]:
        """Return pairs of names that may mean the same."""
        with self.database.snapshot() as connection:
            return people.suggest_aliases(connection, self.settings.tenant, limit=limit)

    def decide_alias(
        self, alias: str, entity: str, *, confirmed: bool
    ) -> tuple[people.Entity, people.Entity]:
        """Record that a name stands for an entity, or that it does not: `people.decide_alias`."""
        tenant = self.settings.tenant
        with self.database.transaction() as connection:
            return people.decide_alias(connection, tenant, alias, entity, confirmed=confirmed)

    def withdraw_alias(self, alias: str, entity: str) -> bool:
        """Withdraw a decision about two names; False if there was none."""
        with self.database.transaction() as connection:
            return people.withdraw_alias(connection, self.settings.tenant, alias, entity)

    # --- Links between notes

    def propose_links(self, *, limit: int, progress: Callable[[int], None]) -> ProposingReport:
        """Ask the language model about pairs of events; see `proposing.propose_links`.

        Raises:
            InvalidParameterError: No language model is configured.
        """
        if self.language_model is None:
            raise InvalidParameterError(Message.GRAPH_LINKS_NEED_LANGUAGE_MODEL)
        return propose_links(
            self.database,
            self.settings.tenant,
            self.language_model,
            limit=limit,
            progress=progress,
        )

    def proposals(self, *, limit: int) -> list[links.Proposal]:
        """Return the links that a language model proposes and nobody has decided on."""
        with self.database.transaction() as connection:
            return links.proposals(connection, self.settings.tenant, limit=limit)

    def decide_link(
        self, cause: str, effect: str, relation: Relation, *, confirmed: bool = True
    ) -> tuple[people.Entity, people.Entity]:
        """Record that an event is the cause of another, or not; see `links.decide_link`."""
        tenant = self.settings.tenant
        with self.database.transaction() as connection:
            return links.decide_link(
                connection, tenant, cause, effect, relation, confirmed=confirmed
            )

    def withdraw_link(self, cause: str, effect: str) -> bool:
        """Withdraw a decision about two events; False if there was none."""
        with self.database.transaction() as connection:
            return links.withdraw_link(connection, self.settings.tenant, cause, effect)
