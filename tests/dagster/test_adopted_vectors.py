"""The whole-note vectors of an adopted database, as the asset `note_embeddings` takes them over."""

import pytest
from dagster_project import MONTHS, NOTE_EMBEDDINGS, Project, failure_texts, materialised


def test_old_vectors_are_taken_over_and_the_model_does_the_rest(
    indexed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the settings say whose they are; the counts of each month tell how many."""
    indexed.query("ALTER TABLE notes ADD COLUMN embedding vector")
    indexed.query(
        "UPDATE notes SET embedding = e.embedding::vector * array_fill(2::real, '{512}')::vector"
        " FROM vectors AS e WHERE e.kind = 'note' AND e.note_id = notes.id"
    )
    old = "SELECT note_id, embedding::text FROM vectors WHERE kind = 'note' ORDER BY 1"
    before = indexed.query(old)
    shortened = "UPDATE notes SET embedding = '[1,2]' WHERE created_at < '2025-02-01' RETURNING id"
    indexed.query("DELETE FROM vectors WHERE kind = 'note'")
    in_january = len(indexed.query(shortened))
    monkeypatch.setenv("LEGACY_EMBEDDING_MODEL", "use_multilingual")

    result = indexed.run(NOTE_EMBEDDINGS, months=MONTHS)

    assert result.success, failure_texts(result)
    counts = materialised(result, NOTE_EMBEDDINGS)
    january = counts[MONTHS[0]]
    assert (january["adopted"], january["unusable"]) == (0, in_january)
    # A short note has the text of its only chunk, whose vector is there.
    assert january["embedded"] + january["reused"] == in_january
    assert january["embedded"] > 0
    others = [counts[month] for month in MONTHS[1:]]
    assert sum(month["adopted"] for month in others) == len(before) - in_january
    assert {(month["unusable"], month["embedded"]) for month in others} == {(0, 0)}
    assert [row[0] for row in indexed.query(old)] == [row[0] for row in before]
