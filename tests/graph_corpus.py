"""A corpus whose notes are read for the graph."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from rag_resources.core.configuration import RetrievalConfig, parse_retrieval
from rag_resources.core.graph_version import GraphPart
from rag_resources.core.mentions import EntityKind, entity_id, fold
from rag_resources.database.pool import Connection, Database
from rag_resources.graph.extraction import Extractor
from rag_resources.graph.reading import GraphReport, read_notes
from rag_resources.store.graph import forget_orphans, register_part
from tests.corpus import ALWAYS, Corpus


class GraphCorpus(Corpus):
    """A corpus with both parts of the graph."""

    def __init__(self, database: Database, extractor: Extractor | None = None) -> None:
        super().__init__(database)
        self.extractor = extractor or Extractor()
        self.register()

    def register(self) -> None:
        """Have both parts made."""
        for part in GraphPart:
            with self.database.transaction() as connection:
                register_part(connection, part, version=self.extractor.version(part))

    def read(self) -> dict[GraphPart, GraphReport]:
        """Read the notes that wait, as the two assets do."""
        reports = {
            part: read_notes(self.database, part, self.extractor, ALWAYS) for part in GraphPart
        }
        with self.database.transaction() as connection:
            forget_orphans(connection)
        return reports

    def names(self) -> set[str]:
        """The names of all entities that are no events."""
        rows = self.fetch("SELECT name FROM entities WHERE kind <> 'event'")
        return {row.name for row in rows}

    def events(self) -> set[str]:
        """The words of all events."""
        return {row.name for row in self.fetch("SELECT name FROM entities WHERE kind = 'event'")}

    def statements(self) -> set[tuple[str, str, str]]:
        """Cause, relation and effect of all statements."""
        rows = self.fetch(
            "SELECT s.name AS cause, r.type, t.name AS effect FROM relationships AS r"
            " JOIN entities AS s ON s.id = r.source_id JOIN entities AS t ON t.id = r.target_id"
        )
        return {(row.cause, row.type, row.effect) for row in rows}

    def waiting(self) -> set[tuple[UUID, str]]:
        """The notes that wait, with the part that has not read them."""
        return {(r.note_id, r.part) for r in self.fetch("SELECT note_id, part FROM pending_graph")}

    def relate(self, links: Sequence[tuple[UUID, UUID]]) -> None:
        """Have the note that states an event also say what was its cause."""
        with self.database.transaction() as connection:
            connection.cursor().executemany(
                "INSERT INTO relationships (tenant_id, id, source_id, target_id, type, confidence,"
                " chunk_id, note_id, marker, marker_start, marker_end, cause_start, cause_end,"
                " effect_start, effect_end, extractor, version)"
                " SELECT r.tenant_id, gen_random_uuid(), %(cause)s, %(effect)s, 'CAUSES', 1,"
                " r.chunk_id, r.note_id, 'dibujada', 0, 1, 0, 1, 0, 1, 'rules', ''"
                " FROM relationships AS r WHERE %(effect)s IN (r.source_id, r.target_id) LIMIT 1",
                [{"cause": cause, "effect": effect} for cause, effect in links],
            )

    def run(self, work: Callable[[Connection], Any]) -> Any:
        """Do something in a transaction."""
        with self.database.transaction() as connection:
            return work(connection)


def name_id(name: str, tenant: str = "ana") -> UUID:
    """The id of a name."""
    return entity_id(tenant, EntityKind.NAME, fold(name))


def event_id(note: UUID, words: str, tenant: str = "ana") -> UUID:
    """The id of an event."""
    return entity_id(tenant, EntityKind.EVENT, fold(words), note)


def graph_config(**graph: Any) -> RetrievalConfig:
    """A configuration of words with the graph."""
    raw = {
        "model": "openai_hash",
        "contextual": False,
        "retrievers": {"fulltext": {"weight": 0.5}},
        "graph": {"enabled": True} | graph,
    }
    return parse_retrieval(raw, origin="prueba")
