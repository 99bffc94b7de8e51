"""Each check of notes, chunks, vectors and questions, on data damaged for real."""

from pathlib import Path

import dagster as dg
import pytest
from dagster_project import (
    CHUNKS,
    EMBEDDINGS,
    GOLDEN,
    MONTHS,
    NOTES,
    WINDOWS,
    Project,
    evaluation,
    failure_texts,
    materialised,
)

from rag_assets import main_job
from rag_assets.code_location import build_defs
from rag_resources.application import open_application
from rag_resources.core.errors import RagError
from rag_resources.languages.labels import label
from rag_resources.languages.messages import _, restored
from rag_resources.settings import load_settings

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


def test_a_run_checks_its_own_months_and_a_check_alone_all_of_them(indexed: Project) -> None:
    """A range run without the damaged month passes; the check launched alone finds the damage."""
    indexed.query(
        "DELETE FROM chunks WHERE note_id = %s AND chunk_index = 0",
        indexed.note_id("2025-03-14-cuarenta"),
    )
    result = indexed.run(CHUNKS, months=MONTHS[:2])
    assert result.success, failure_texts(result)
    assert evaluation(result, CHUNKS, "chunk_integrity").metadata[label("notes")].value < 16
    assert not indexed.check(CHUNKS, "chunk_integrity").passed


def test_a_vector_that_is_gone(indexed: Project) -> None:
    """It fails the run of its month, and another run of the assets does not hide it."""
    indexed.query(
        "DELETE FROM chunk_embeddings WHERE chunk_id = (SELECT min(id::text)::uuid FROM chunks)"
    )
    said = indexed.check(EMBEDDINGS, "embeddings_complete")
    assert (said.passed, said.severity, said.blocking) == (False, ERROR, True)
    assert said.metadata[label("missing")].value == 1


def test_a_vector_that_is_not_the_texts_own(indexed: Project) -> None:
    """Vectors altered in the store block, and the next batch does not start."""
    indexed.query(
        "UPDATE chunk_embeddings AS e SET embedding ="
        " (SELECT array_agg(CASE WHEN i = 1 THEN 1 ELSE 0.01 END)::real[]::vector::halfvec"
        "  FROM generate_series(1, 512) AS i)"
    )
    said = indexed.check(EMBEDDINGS, "batch_equals_single")
    assert (said.passed, said.severity, said.blocking) == (False, ERROR, True)
    assert said.metadata[label("lowest_cosine")].value < 0.9
    assert said.metadata[label("wrong_norms")].value > 0
    assert indexed.run(GOLDEN).success
    batch = indexed.check(EMBEDDINGS, "retrieval_quality")
    assert not batch.passed
    assert batch.metadata[label("next_batch")].value == _("The next batch will not start")
    assert "los vectores no son los del modelo" in str(batch.description)


WITH_WINDOWS = """
name: ventanas
description: Con ventanas del modelo rápido.
role: candidate
retrieval:
  strategy: hybrid
  model: use_multilingual
  retrievers: {windows: {weight: 0.5}, fulltext: {weight: 0.5}}
  fusion: {method: scaled}
"""


def test_windows_that_are_not_the_models_close_its_gate(
    indexed: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Altered in the store, they block like the vectors of chunks do."""
    (tmp_path / "ventanas.yaml").write_text(WITH_WINDOWS, "utf-8")
    monkeypatch.setenv("RAG_CONFIGURATIONS", str(tmp_path))
    made = indexed.run(GOLDEN, WINDOWS, months=MONTHS)
    assert made.success, failure_texts(made)
    assert evaluation(made, WINDOWS, "windows_batch_equals_single").passed

    indexed.query(
        "UPDATE chunk_windows AS w SET embedding = o.embedding"
        " FROM (SELECT embedding FROM chunk_windows LIMIT 1) AS o"
    )
    said = indexed.check(WINDOWS, "windows_batch_equals_single")
    assert (said.passed, said.severity, said.blocking) == (False, ERROR, True)
    assert said.metadata[label("lowest_cosine")].value < 0.9
    ((gate, reason),) = indexed.query("SELECT gate, reason FROM migration_batches")
    assert gate == "closed"
    assert "los vectores no son los del modelo" in restored(reason)


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


def test_the_main_job_indexes_whatever_the_questions_lack_and_says_it(
    indexed: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """The question, its note by name and the remedy stand on the terminal and in the run's log."""
    question = indexed.corpus.questions()[0]
    (note,) = question["relevantNotes"]
    (indexed.corpus.notes / note[:7] / f"{note}.md").unlink()
    settings = load_settings()
    with open_application(settings) as application:
        application.notes.delete([indexed.note_id(note)], reason="prueba")
    runs = main_job._Runs(build_defs(settings), settings, indexed.instance)
    result = runs.questions()
    assert not result.success
    ((golden_id,),) = indexed.query(
        "SELECT id FROM golden_dataset WHERE query = %s", question["query"]
    )
    finding = _(
        "Relevant notes that are gone or expired: {notes}. Question: “{query}”. Change it with "
        "“rag golden update {golden_id} --note NOTE”, delete it with “rag golden delete "
        "{golden_id}” or, if the note was deleted lately, restore it with “rag notes restore "
        "NOTE”."
    ).format(query=question["query"], golden_id=golden_id, notes=note)
    said = _("the check “{check}” of “{asset}” has failed. {description}").format(
        check="golden_valid",
        asset="golden_dataset",
        description=_(
            "Questions with notes that are gone: {count}. Nothing is evaluated or promoted until "
            "they are mended.\n{examples}"
        ).format(count=1, examples=finding),
    )
    assert capsys.readouterr().err.strip() == _(
        "The golden questions do not pass their check, so nothing will be evaluated or promoted; "
        "the notes are indexed meanwhile. The reason is told at the end."
    )
    with pytest.raises(RagError) as told:
        main_job._succeeded(result, load_settings())
    assert said in told.value.message
    assert "severity" not in told.value.message
    stored = [
        entry.dagster_event.step_failure_data
        for entry in indexed.instance.all_logs(
            result.run_id, of_type=dg.DagsterEventType.STEP_FAILURE
        )
        if entry.dagster_event
    ]
    assert [item.user_failure_data.description for item in stored if item.user_failure_data] == [
        said
    ]


def test_no_questions_at_all(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty set is not valid, and says how to get one; it only warns."""
    monkeypatch.setenv("GOLDEN_SOURCE", "")
    result = project.run(GOLDEN)
    assert result.success
    said = evaluation(result, GOLDEN, "golden_valid")
    assert (said.passed, said.description) == (
        False,
        _(
            "The set of questions is empty, so there is nothing to evaluate. Import one with “rag "
            "golden import FILE”."
        ),
    )


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


def test_notes_outside_the_partitions(project: Project) -> None:
    """An old note names the setting that brings it in, a future one is to be corrected."""
    old, future = project.corpus.notes / "vieja.md", project.corpus.notes / "futura.md"
    future.write_text("---\ncreated_at: 2199-05-01\n---\nUna nota del futuro.", "utf-8")
    result = project.run(NOTES, months=MONTHS[:1])
    assert result.success, failure_texts(result)
    said = evaluation(result, NOTES, "notes_inside_partitions")
    assert (said.passed, said.severity) == (False, WARN)
    assert "futura" in str(said.description)
    assert "FIRST_MONTH" not in str(said.description)

    old.write_text("---\ncreated_at: 2019-03-07\n---\nUna nota de antes.", "utf-8")
    said = evaluation(project.run(NOTES, months=MONTHS[:1]), NOTES, "notes_inside_partitions")
    assert said.metadata[label("outside")].value == 2
    assert "FIRST_MONTH=2019-03." in str(said.description)
    assert "vieja, futura" in str(said.description)


def test_retrieval_quality_adds_a_point_a_run(indexed: Project) -> None:
    """Metrics are numbers, so that the UI draws them; without questions it says what is missing."""
    assert [item.description for item in said_of_quality(indexed)] == [
        _("There are no questions to measure with: materialise golden_dataset.")
    ]
    for __ in range(2):
        assert indexed.run(EMBEDDINGS, months=MONTHS).success
    points = said_of_quality(indexed)[:-1]
    assert len(points) == 2
    for point in points:
        assert isinstance(point.metadata[label("hit_rate_at_10")], dg.FloatMetadataValue)
        assert 0.85 <= point.metadata[label("hit_rate_at_10")].value <= 1
        assert isinstance(point.metadata[label("latency_p95_ms")], dg.FloatMetadataValue)
        assert point.metadata[label("total_queries")].value == len(indexed.corpus.questions())
    assert indexed.query("SELECT count(*) FROM evaluation_results") == [(0,)]


def said_of_quality(project: Project) -> list[dg.AssetCheckEvaluation]:
    """Return what the check of quality said so far, newest first, as the instance keeps it.

    Dagster plans such a check once per month of a run and evaluates it once: plans are left out.
    """
    records = project.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(EMBEDDINGS, "retrieval_quality"), limit=50
    )
    said = [record.event.dagster_event.event_specific_data for record in records if record.event]
    return [item for item in said if isinstance(item, dg.AssetCheckEvaluation)]
