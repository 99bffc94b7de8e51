"""After a batch that loses hits, the next one does not start without an override."""

from typing import Any

import dagster as dg
import pytest
from dagster_project import (
    CANDIDATE,
    CHUNKS,
    EMBEDDINGS,
    FILLER,
    GOLDEN,
    MONTHS,
    PROMOTED,
    Project,
    evaluation,
    failure_texts,
    materialised,
)

from rag_resources.languages.labels import label
from rag_resources.languages.messages import _, restored

QUALITY = "retrieval_quality"
LAST = MONTHS[-1:]
WAYS_TO_ASK = ("", "Dime: ", "Me pregunto: ")


@pytest.fixture
def migrating(indexed: Project) -> Project:
    """Indexed, with a configuration that serves, and enough questions to show a drop."""
    indexed.corpus.ask(
        [
            {**question, "query": f"{way}{question['query']}"}
            for question in indexed.corpus.questions()
            for way in WAYS_TO_ASK
        ]
    )
    assert indexed.run(GOLDEN, CANDIDATE, PROMOTED).success
    return indexed


def lose(project: Project, questions: int = 100) -> None:
    """Let the notes that answer some questions expire, so that they are no longer found."""
    for question in project.corpus.questions()[: questions * len(WAYS_TO_ASK)]:
        project.query(
            "UPDATE notes SET expires_at = now() WHERE external_id = ANY(%s)",
            question["relevantNotes"],
        )


def leave_work(project: Project) -> None:
    """Change a note of the last month that answers no question."""
    project.query("UPDATE notes SET content = content || ' Más.' WHERE external_id = %s", FILLER)


def has_work(project: Project) -> bool:
    return project.query("SELECT chunked_at IS NULL FROM notes WHERE external_id = %s", FILLER) == [
        (True,)
    ]


def override(op: str, reason: str) -> dict[str, Any]:
    return {"ops": {op: {"config": {"override_quality_gate": reason}}}}


def close(project: Project) -> dg.AssetCheckEvaluation:
    """Lose every answer, and run a batch that has nothing to do but measure quality."""
    lose(project)
    result = project.run(EMBEDDINGS, months=MONTHS[:1])
    assert result.success, failure_texts(result)
    return evaluation(result, EMBEDDINGS, QUALITY)


def batches(project: Project, columns: str) -> list[tuple[Any, ...]]:
    return project.query(f"SELECT {columns} FROM migration_batches ORDER BY id")


def test_a_good_batch_is_recorded_and_lets_the_next_one_start(migrating: Project) -> None:
    result = migrating.run(EMBEDDINGS, months=MONTHS[:2])
    said = evaluation(result, EMBEDDINGS, QUALITY)
    assert said.passed
    assert _("The next batch may start") in str(said.description)
    assert "sin caída significativa frente a «rapida»" in str(said.description)
    assert batches(migrating, "model, run_id, months, total_queries, gate") == [
        ("use_multilingual", result.run_id, ["2025-01", "2025-02"], 24, "open")
    ]
    leave_work(migrating)
    last = migrating.run(CHUNKS, EMBEDDINGS, months=LAST)
    assert last.success, failure_texts(last)
    assert not has_work(migrating)


def test_after_a_significant_drop_the_next_batch_does_not_start(migrating: Project) -> None:
    """The check and the next run say why and what to do; finished months may be run again."""
    said = close(migrating)
    assert (said.passed, said.severity, said.blocking) == (
        False,
        dg.AssetCheckSeverity.ERROR,
        False,
    )
    assert _("The next batch will not start") in str(said.description)
    assert "caída significativa frente a «rapida»" in str(said.description)
    p_value = said.metadata[label("p_value")].value.removeprefix("< ")
    assert float(p_value) < said.metadata[label("level")].value

    leave_work(migrating)
    refused = migrating.run(CHUNKS, EMBEDDINGS, months=LAST)
    assert not refused.success
    assert not materialised(refused, CHUNKS)
    assert has_work(migrating)
    told = failure_texts(refused)
    assert "embeddings/use_multilingual" in told
    assert restored(batches(migrating, "reason")[-1][0]) in told
    assert 'ops: {chunks: {config: {override_quality_gate: "…"}}}' in told

    assert migrating.run(CHUNKS, EMBEDDINGS, months=MONTHS[:1]).success


def test_an_override_lets_a_batch_start_and_is_kept_with_its_reason(migrating: Project) -> None:
    """It holds for what follows until another batch closes the gate again."""
    close(migrating)
    leave_work(migrating)
    assert not migrating.run(CHUNKS, months=LAST, run_config=override("chunks", "  ")).success
    going_on = migrating.run(CHUNKS, months=LAST, run_config=override("chunks", "Se acepta."))
    assert going_on.success, failure_texts(going_on)
    assert materialised(going_on, CHUNKS)[LAST[0]]["override_quality_gate"] == "Se acepta."
    kept = "gate, override_reason, override_run_id, overridden_at > finished_at"
    assert batches(migrating, kept) == [("closed", "Se acepta.", going_on.run_id, True)]

    vectors = migrating.run(EMBEDDINGS, months=LAST)
    assert vectors.success, failure_texts(vectors)
    assert "override_quality_gate" not in materialised(vectors, EMBEDDINGS)[LAST[0]]
    assert batches(migrating, "gate, override_reason")[1:] == [("closed", None)]

    leave_work(migrating)
    chunked = migrating.run(CHUNKS, months=LAST, run_config=override("chunks", "Otra vez."))
    assert chunked.success
    assert close(migrating).passed is False
    refused = migrating.run(EMBEDDINGS, months=LAST)
    assert "ops: {embeddings__use_multilingual: {config:" in failure_texts(refused)
    own = override("embeddings__use_multilingual", "Y otra.")
    last = migrating.run(EMBEDDINGS, months=LAST, run_config=own)
    assert materialised(last, EMBEDDINGS)[LAST[0]]["override_quality_gate"] == "Y otra."
