"""The graph in a real database: how it is made, kept up to date, and how it goes."""

from dataclasses import replace
from uuid import UUID

import pytest

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.graph_version import GraphPart
from rag_resources.database.pool import Database
from rag_resources.graph.extraction import Extractor
from rag_resources.indexing.purge import purge
from rag_resources.ingestion.ingest import ingest
from rag_resources.store.graph import is_current
from tests.corpus import ALWAYS, SOURCE, Draft, records
from tests.graph_corpus import GraphCorpus, name_id

LONG = ChunkingConfig(max_tokens=512, overlap_tokens=0, min_tokens=0)
BAR = "Ayer hablé con Rosa. El bar cerró porque nadie pagaba. Por eso Rosa volvió a Teruel."
LIFT = "La junta vio con Rosa el ascensor, así que habrá obras en Orriols."
SHOP = "Fui al mercado con Noemí. No pasó nada más."
NOTES = [Draft(BAR, "El bar"), Draft(LIFT, tags=("cal-viva",)), Draft(SHOP)]
STATEMENTS = {
    ("nadie pagaba", "CAUSES", "El bar cerró"),
    ("El bar cerró", "LEADS_TO", "Rosa volvió a Teruel"),
    ("La junta vio con Rosa el ascensor", "LEADS_TO", "habrá obras en Orriols"),
}


@pytest.fixture
def corpus(database: Database) -> GraphCorpus:
    return GraphCorpus(database)


def test_notes_are_read_once_and_a_second_run_finds_nothing_to_do(corpus: GraphCorpus) -> None:
    ids = corpus.fill(NOTES, LONG)
    assert corpus.waiting() == {(note, part.value) for note in ids for part in GraphPart}
    reports = corpus.read()
    assert corpus.names() == {"Rosa", "Teruel", "cal-viva", "Orriols", "Noemí"}
    assert corpus.statements() == STATEMENTS
    assert corpus.waiting() == set()
    assert [reports[part].notes for part in GraphPart] == [3, 3]
    assert reports[GraphPart.STATEMENTS].found == 3
    before = corpus.fetch("SELECT * FROM mentions ORDER BY chunk_id, entity_id, start_char")
    again = corpus.read()
    assert [again[part].notes for part in GraphPart] == [0, 0]
    assert corpus.fetch("SELECT * FROM mentions ORDER BY chunk_id, entity_id, start_char") == before


def test_an_edit_replaces_what_one_note_says_and_leaves_the_others(corpus: GraphCorpus) -> None:
    corpus.fill(NOTES, LONG)
    corpus.read()
    edited = [replace(NOTES[0], text="Ayer hablé con Bernat."), *NOTES[1:]]
    ingest(corpus.database, records(edited, "ana"), tenant="ana", source=SOURCE)
    corpus.index(LONG)
    assert {part for _, part in corpus.waiting()} == {"mentions", "causal_statements"}
    assert len(corpus.waiting()) == 2
    corpus.read()
    assert corpus.names() == {"Bernat", "Rosa", "cal-viva", "Orriols", "Noemí"}
    assert corpus.statements() == {item for item in STATEMENTS if "junta" in item[0]}


def test_property_51_a_deleted_note_leaves_no_name_and_no_event(corpus: GraphCorpus) -> None:
    ids = corpus.fill(NOTES, LONG)
    corpus.read()
    corpus.run(lambda c: c.execute("DELETE FROM notes WHERE id = %s", (ids[0],)))
    assert corpus.names() == {"Rosa", "cal-viva", "Orriols", "Noemí"}
    assert corpus.events() == {"La junta vio con Rosa el ascensor", "habrá obras en Orriols"}
    corpus.run(lambda c: c.execute("UPDATE notes SET expires_at = now() - interval '1 day'"))
    purge(corpus.database, grace_hours=0)
    assert corpus.names() | corpus.events() == set()


class OtherRules(Extractor):
    """Rules of another version."""

    def version(self, part: GraphPart) -> str:
        return f"otra-{part}"


def test_other_rules_read_every_note_again(corpus: GraphCorpus) -> None:
    corpus.fill(NOTES, LONG)
    corpus.read()
    versions = {part: OtherRules().version(part) for part in GraphPart}
    assert not corpus.run(lambda c: is_current(c, versions, ALWAYS))
    corpus.extractor = OtherRules()
    corpus.register()
    assert len(corpus.waiting()) == 6
    corpus.read()
    assert corpus.run(lambda c: is_current(c, versions, ALWAYS))
    found = corpus.fetch("SELECT DISTINCT version FROM mentions")
    assert [row.version for row in found] == ["otra-mentions"]


def test_tenants_have_entities_of_their_own(corpus: GraphCorpus) -> None:
    corpus.fill([Draft(SHOP), Draft(SHOP, tenant="luis")], LONG)
    corpus.read()
    ids = {row.id for row in corpus.fetch("SELECT id FROM entities WHERE name = 'Noemí'")}
    assert ids == {name_id("Noemí"), name_id("Noemí", "luis")}


def test_a_note_that_the_database_refuses_is_recorded_and_the_others_go_on(
    corpus: GraphCorpus,
) -> None:
    ids = corpus.fill(NOTES, LONG)
    corpus.run(lambda c: c.execute("ALTER TABLE entities ADD CHECK (name <> 'Noemí') NOT VALID"))
    reports = corpus.read()
    assert [failure.note_id for failure in reports[GraphPart.MENTIONS].failed] == [ids[2]]
    assert corpus.waiting() == {(ids[2], "mentions")}
    failures = corpus.fetch("SELECT stage, note_id FROM indexing_failures")
    assert [(row.stage, row.note_id) for row in failures] == [("mentions", ids[2])]
    assert UUID(int=0) not in ids
