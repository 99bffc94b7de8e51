"""The rollback jobs and the resumption: confirmation, reason, and effect on later runs."""

from typing import Any

import dagster as dg
import pytest
from dagster_project import (
    CANDIDATE,
    CHUNKS,
    EMBEDDINGS,
    FILLER,
    MONTHS,
    PROMOTED,
    Project,
    by_field,
    definitions,
    failure_texts,
)

from rag_resources.languages.messages import _

WHY = "Se pierden respuestas."
LAST = MONTHS[-1:]
OPS = {
    "rollback_immediate": "drop_migration",
    "rollback_partial": "stop_migration",
    "rollback_promotion": "withdraw_promotion",
    "resume_migration": "lift_hold",
}


def run(project: Project, job: str, **config: Any) -> dg.ExecuteInProcessResult:
    return (
        definitions()
        .resolve_job_def(job)
        .execute_in_process(
            instance=project.instance,
            raise_on_error=False,
            run_config={"ops": {OPS[job]: {"config": config}}},
        )
    )


def told(project: Project, job: str, **config: Any) -> dict[str, Any]:
    """Run a job that must succeed and return its op's output metadata."""
    result = run(project, job, **config)
    assert result.success, failure_texts(result)
    output = next(event for event in result.all_events if event.is_successful_output)
    return by_field(output.step_output_data.metadata)


def state(project: Project) -> list[list[tuple[Any, ...]]]:
    """All that these jobs change."""
    return [
        project.query(f"SELECT * FROM {table} ORDER BY id")
        for table in ("notes", "chunks", "promotions", "migration_holds")
    ]


def leave_work(project: Project) -> None:
    """Change a note of the last month."""
    project.query("UPDATE notes SET content = content || ' Más.' WHERE external_id = %s", FILLER)


def notes(project: Project) -> list[tuple[Any, ...]]:
    return project.query(
        "SELECT id, created_at, updated_at, content_sha256, metadata FROM notes ORDER BY id"
    )


@pytest.mark.parametrize(
    ("job", "word", "consequence"),
    [
        ("rollback_immediate", _("delete"), "se borrarían fragmentos: {chunks}, de 16 notas"),
        ("rollback_partial", _("stop"), "con 16 de 16 notas fragmentadas"),
    ],
)
def test_unconfirmed_a_job_says_what_would_happen(
    indexed: Project, job: str, word: str, consequence: str
) -> None:
    """And what to write; nor does it go without a reason."""
    before = state(indexed)
    refused = run(indexed, job, confirm="sí", reason=WHY)
    [failed] = refused.get_step_failure_events()
    assert failed.step_failure_data.error
    assert failed.step_failure_data.error.cause is None, "the page shows our sentence first"
    said = failure_texts(refused)
    assert consequence.format(chunks=len(before[1])) in said
    assert f"escribe «{word}» en confirm" in said
    assert _("Nothing was changed: the reason is missing.") in failure_texts(
        run(indexed, job, confirm=word, reason=" ")
    )
    assert state(indexed) == before


def test_immediate_and_on_again(indexed: Project) -> None:
    """Whole notes serve, one chunk each, and no batch or promotion starts until it is resumed."""
    assert indexed.run(CANDIDATE, PROMOTED).success
    [(chunks,)] = indexed.query("SELECT count(*) FROM chunks")
    before = notes(indexed)
    config = {"confirm": _("delete"), "reason": WHY}
    said = told(indexed, "rollback_immediate", **config)
    assert (said["chunked_before"], said["chunks_before"]) == (16, chunks)
    assert (said["chunked_after"], said["chunks_after"], said["vectors_after"]) == (0, 16, 0)
    assert (said["serving"], said["changed"]) == ("baseline", True)
    assert WHY in said["hold"]
    assert notes(indexed) == before
    for asset in (CHUNKS, EMBEDDINGS):
        assert not indexed.instance.get_materialized_partitions(asset), "backfill what is missing"

    after = state(indexed)
    again = told(indexed, "rollback_immediate", **config)
    assert (again["chunks_before"], again["changed"]) == (16, False)
    assert state(indexed) == after

    override = {"ops": {"chunks": {"config": {"override_quality_gate": "Da igual."}}}}
    for refused in (
        indexed.run(CHUNKS, months=LAST),
        indexed.run(CHUNKS, months=LAST, run_config=override),
        indexed.run(PROMOTED),
    ):
        assert "La migración se deshizo" in failure_texts(refused)
        assert "resume_migration" in failure_texts(refused)
    assert state(indexed) == after

    assert _("Nothing was changed: the reason is missing.") in failure_texts(
        run(indexed, "resume_migration")
    )
    assert WHY in told(indexed, "resume_migration", reason="Arreglado.")["lifted"]
    assert told(indexed, "resume_migration", reason="Arreglado.")["changed"] is False
    assert indexed.run(CHUNKS, EMBEDDINGS, months=MONTHS).success
    assert indexed.query("SELECT count(*) FROM chunks") == [(chunks,)]
    assert notes(indexed) == before


def test_partial_stops_batches(indexed: Project) -> None:
    """A batch with nothing to do runs."""
    before = state(indexed)
    said = told(indexed, "rollback_partial", confirm=_("stop"), reason=WHY)
    assert (said["chunks_before"], said["changed"]) == (said["chunks_after"], True)
    assert state(indexed)[:3] == before[:3]
    assert indexed.run(CHUNKS, EMBEDDINGS, months=LAST).success
    leave_work(indexed)
    assert "La migración está detenida" in failure_texts(indexed.run(CHUNKS, months=LAST))
    again = told(indexed, "rollback_partial", confirm=_("stop"), reason="Otro.")
    assert again["changed"] is False
    assert WHY in again["hold"]
