"""Each check of notes, chunks, vectors and questions, on data damaged for real."""

import dagster as dg
from dagster_project import (
    CHUNKS,
    EMBEDDINGS,
    GOLDEN,
    MONTHS,
    NOTES,
    Project,
    evaluation,
    failure_texts,
    materialised,
)

from rag_resources.languages.labels import label
from rag_resources.languages.messages import _, restored

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


def test_all_is_well_after_indexing(indexed: Project) -> None:
    """Every check of an indexed project passes and says what it looked at."""
    integrity = indexed.check(CHUNKS, "chunk_integrity")
    assert integrity.passed
    assert integrity.metadata[label("notes")].value == 16
    complete = indexed.check(EMBEDDINGS, "embeddings_complete")
    assert complete.passed
    assert [complete.metadata[label(gap)].value for gap in ("missing", "stale")] == [0, 0]
    single = indexed.check(EMBEDDINGS, "batch_equals_single")
    assert single.passed
    assert 0.999 <= single.metadata[label("lowest_cosine")].value <= 1.00001
    assert indexed.check(GOLDEN, "golden_valid").passed
    assert indexed.check(NOTES, "notes_inside_partitions").passed
    assert indexed.check(NOTES, "notes_dated").passed


def test_tampered_chunks_stop_the_run_before_their_vectors(indexed: Project) -> None:
    """The blocking check names the note; the steps after chunks are not run."""
    note = indexed.note_id("2025-03-14-cuarenta")
    indexed.query(
        "UPDATE chunks SET content = repeat('x', char_length(content))"
        " WHERE note_id = %s AND chunk_index = 0",
        note,
    )
    result = indexed.run(CHUNKS, EMBEDDINGS, months=MONTHS[2:3])
    assert not result.success
    said = evaluation(result, CHUNKS, "chunk_integrity")
    assert (said.passed, said.severity) == (False, ERROR)
    assert f"{note} (bounds)" in str(said.description)
    assert failure_texts(result) == _(
        "the check “{check}” of “{asset}” has failed. {description}"
    ).format(check="chunk_integrity", asset="chunks", description=said.description)
    assert materialised(result, CHUNKS)
    assert not materialised(result, EMBEDDINGS)


def test_a_vector_that_is_not_the_texts_own(indexed: Project) -> None:
    """Property 63: altered in the store, they block, are deleted and made again."""
    assert indexed.run(GOLDEN).success
    indexed.query(
        "UPDATE vectors_use_multilingual_chunk SET embedding ="
        " (SELECT array_agg(CASE WHEN i = 1 THEN 1 ELSE 0.01 END)::real[]::vector::halfvec"
        "  FROM generate_series(1, 512) AS i)"
    )
    said = indexed.check(EMBEDDINGS, "batch_equals_single")
    assert (said.passed, said.severity, said.blocking) == (False, ERROR, True)
    assert said.metadata[label("lowest_cosine")].value < 0.9
    assert said.metadata[label("wrong_norms")].value > 0
    *_earlier, (gate, reason) = indexed.query(
        "SELECT gate, reason FROM migration_batches ORDER BY finished_at"
    )
    assert gate == "closed"
    assert "los vectores no son los del modelo" in restored(reason)
    assert indexed.query("SELECT count(*) FROM vectors_use_multilingual_chunk") == [(0,)]
    assert indexed.check(EMBEDDINGS, "retrieval_quality").passed
    assert indexed.run(EMBEDDINGS, months=MONTHS).success
    assert indexed.check(EMBEDDINGS, "batch_equals_single").passed

    mended = indexed.run(EMBEDDINGS, months=MONTHS)
    assert mended.success, failure_texts(mended)
    assert evaluation(mended, EMBEDDINGS, "batch_equals_single").passed
    assert indexed.check(EMBEDDINGS, "retrieval_quality").passed, "the gate is open again"


def test_a_question_whose_note_is_gone(indexed: Project) -> None:
    """The questions are named in what the check says."""
    question = indexed.corpus.questions()[0]
    indexed.query("DELETE FROM notes WHERE external_id = %s", question["relevantNotes"][0])
    said = indexed.check(GOLDEN, "golden_valid")
    assert (said.passed, said.severity, said.blocking) == (False, ERROR, True)
    ((golden_id,),) = indexed.query(
        "SELECT id FROM golden_dataset WHERE query = %s", question["query"]
    )
    gone = indexed.query("SELECT note_id::text FROM tombstones")
    assert gone == [], "the note was deleted in the table, past the product"
    for named in (f"«{question['query']}»", f"rag golden update {golden_id}", "rag notes restore"):
        assert named in str(said.description)


def test_bad_questions_import_nothing(indexed: Project) -> None:
    """The run fails with every bad entry named, and the questions stay as they were."""
    questions = indexed.corpus.questions()
    wrong = [{**questions[0], "relevantNotes": ["no-existe"]}, {**questions[1], "difficulty": 9}]
    indexed.corpus.ask([*wrong, *questions[2:]])
    result = indexed.run(GOLDEN)
    assert not result.success
    assert "la nota relevante «no-existe» no existe" in failure_texts(result)
    assert "difficulty" in failure_texts(result)
    assert indexed.query("SELECT count(*) FROM golden_dataset") == [(len(questions),)]
