"""Expired notes are deleted with everything derived from them, and nothing else is."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import psycopg
import pytest

from rag_resources.database.pool import Database
from rag_resources.indexing import purge as module
from rag_resources.indexing.purge import PurgeReport, purge
from tests.corpus import Corpus, Draft

GRACE_HOURS = 24
DERIVED = ("chunks", "vectors_openai_hash_note", "pending_vectors", "indexing_failures")


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


def expire(corpus: Corpus, hours_ago: dict[UUID, float]) -> None:
    with corpus.database.transaction() as connection:
        for note, hours in hours_ago.items():
            connection.execute(
                "UPDATE notes SET expires_at = now() - make_interval(secs => 3600 * %s::float8)"
                " WHERE id = %s",
                (hours, note),
            )


def notes_in(corpus: Corpus, table: str = "notes") -> set[UUID]:
    column = "id" if table == "notes" else "note_id"
    return {row[0] for row in corpus.fetch(f"SELECT {column} FROM {table}")}


def test_what_expired_before_the_grace_goes_whole(corpus: Corpus) -> None:
    """Of every tenant and state; who expired just now, later or never stays as it was."""
    drafts = [
        Draft("Secretísimo fue lo del sótano. Nadie más lo sabe, ni Vera."),
        Draft("Lo mismo de otra persona.", tenant="blas"),
        Draft("Una nota fragmentada sin vectores.", state="pending"),
        Draft("Una nota nueva.", state="new"),
        Draft("Caducó hace poco."),
        Draft("Caduca mañana."),
        Draft("No caduca nunca."),
    ]
    notes = corpus.fill(drafts)
    with corpus.database.transaction() as connection:
        for note in notes:
            connection.execute(
                "INSERT INTO indexing_failures (stage, note_id, error, tenant_id)"
                " SELECT 'chunk', id, '{}', tenant_id FROM notes WHERE id = %s",
                (note,),
            )
    by_text = {row.content: row.id for row in corpus.fetch("SELECT id, content FROM notes")}
    ids = [by_text[draft.text] for draft in drafts]
    ages = [1000, 25, 24.01, 48, 23, -24]
    expire(corpus, dict(zip(ids, ages, strict=False)))
    kept = corpus.fetch("SELECT xmin::text, * FROM notes WHERE id = ANY(%s) ORDER BY id", ids[4:])

    assert purge(corpus.database, grace_hours=GRACE_HOURS) == PurgeReport(deleted=4, left=0)

    assert corpus.fetch("SELECT xmin::text, * FROM notes ORDER BY id") == kept
    for table in DERIVED:
        assert notes_in(corpus, table) <= set(ids[4:]), table
    assert notes_in(corpus, "chunks") == set(ids[4:])
    orphans = "SELECT FROM vectors WHERE chunk_id NOT IN (SELECT id FROM chunks)"
    assert corpus.fetch(orphans) == []
    words = {row.lexeme for row in corpus.fetch("SELECT lexeme FROM lexeme_statistics")}
    assert not {word for word in words if word.startswith(("secret", "sotan", "sótan"))}
    assert "caduc" in words


def test_a_run_that_dies_has_deleted_the_oldest_and_the_next_one_goes_on(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch by batch, first what expired first; a batch that fails is undone whole."""
    monkeypatch.setattr(module, "BATCH_NOTES", 2)
    ids = corpus.fill([Draft(f"La nota {number}.") for number in range(7)])
    expire(corpus, {note: 100 - number for number, note in enumerate(ids)})
    with corpus.database.transaction() as connection:
        connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN RAISE EXCEPTION 'no'; END$$"
        )
        connection.execute(
            "CREATE TRIGGER refused BEFORE DELETE ON notes FOR EACH ROW"
            f" WHEN (old.id = '{ids[3]}') EXECUTE FUNCTION refuse()"
        )
    with pytest.raises(psycopg.errors.RaiseException):
        purge(corpus.database, grace_hours=GRACE_HOURS)
    assert notes_in(corpus) == notes_in(corpus, "chunks") == set(ids[2:])

    with corpus.database.transaction() as connection:
        connection.execute("DROP TRIGGER refused ON notes")
    assert purge(corpus.database, grace_hours=GRACE_HOURS).deleted == 5
    assert notes_in(corpus) == set()


def test_two_runs_at_once_share_the_work(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_NOTES", 3)
    ids = corpus.fill([Draft(f"La nota {number}.") for number in range(40)])
    expire(corpus, dict.fromkeys(ids, 30))
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(purge, corpus.database, grace_hours=GRACE_HOURS) for _ in range(2)]
        assert sum(run.result(timeout=60).deleted for run in runs) == 40
    assert notes_in(corpus) == set()


def test_a_note_whose_expiry_is_being_moved_stays(corpus: Corpus, database_url: str) -> None:
    """Whether the move is committed before or after the run looks at the note."""
    moved, gone = corpus.fill([Draft("Se queda."), Draft("Se va.")])
    expire(corpus, {moved: 30, gone: 30})
    with psycopg.connect(database_url) as owner:
        owner.execute("UPDATE notes SET expires_at = now() + '1 day' WHERE id = %s", (moved,))
        report = purge(corpus.database, grace_hours=GRACE_HOURS)
        assert report == PurgeReport(deleted=1, left=1)
    assert purge(corpus.database, grace_hours=GRACE_HOURS) == PurgeReport(deleted=0, left=0)
    assert notes_in(corpus) == {moved}


def test_the_words_of_a_purged_note_go_at_once_from_a_large_index_too(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where other changes wait until there are more of them."""
    monkeypatch.setattr("rag_resources.store.chunks.LARGE_INDEX", 1)
    secret, *_ = corpus.fill([Draft("Zarapito."), *(Draft(f"La nota {n}.") for n in range(150))])
    expire(corpus, {secret: GRACE_HOURS + 1})
    assert purge(corpus.database, grace_hours=GRACE_HOURS) == PurgeReport(deleted=1, left=0)
    words = {row.lexeme for row in corpus.fetch("SELECT lexeme FROM lexeme_statistics")}
    assert not any(word.startswith("zarapit") for word in words)
    assert corpus.fetch("SELECT FROM chunk_word_changes") == []
