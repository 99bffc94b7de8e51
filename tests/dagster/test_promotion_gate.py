"""No candidate is promoted past its gate; one that passes is promoted once."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster_project import (
    CANDIDATE,
    CHUNKS,
    CONFIGURATIONS,
    EMBEDDINGS,
    FILLER,
    GOLDEN,
    MONTHS,
    PROMOTED,
    REFERENCE,
    Project,
    definitions,
    evaluation,
    failure_texts,
    materialised,
)

from rag_resources.languages.labels import label

NAMED = {"ops": {"promoted_config": {"config": {"configuration": "rapida"}}}}
REFUSED = "rapida: no pasa el control, Hit_Rate@10 ="


@pytest.fixture
def failing(indexed: Project) -> Project:
    """A project whose questions point at a note that answers none of them."""
    indexed.corpus.ask(
        [{**question, "relevantNotes": [FILLER]} for question in indexed.corpus.questions()]
    )
    assert indexed.run(GOLDEN).success
    return indexed


def promote_by_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Materialise the promoted configuration as a person would on the command line."""
    command = "asset materialize --select promoted_config -m rag_assets.definitions"
    return subprocess.run(
        [sys.executable, "-m", "dagster", *command.split(), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def job(project: Project, name: str, op: str, **config: str) -> None:
    """Execute a job of one op, as a person does."""
    found = definitions().resolve_job_def(name)
    run_config = {"ops": {op: {"config": config}}}
    result = found.execute_in_process(
        instance=project.instance, raise_on_error=False, run_config=run_config
    )
    assert result.success, failure_texts(result)


def promotions(project: Project) -> list[tuple[Any, ...]]:
    """Return what was promoted, oldest first."""
    return project.query("SELECT configuration FROM promotions ORDER BY id")


@pytest.mark.parametrize("run_config", [{}, NAMED], ids=["best", "named"])
def test_a_failed_gate_stops_the_promotion_and_nothing_else(
    failing: Project, run_config: Mapping[str, Any]
) -> None:
    """The check is red; only the promotion fails the run, and it says why."""
    result = failing.run(CANDIDATE, PROMOTED, run_config=run_config)
    said = evaluation(result, CANDIDATE, "hit_rate_gate")
    assert (said.passed, said.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert said.metadata[label("hit_rate_at_10")].value < 0.85
    assert materialised(result, CANDIDATE)
    assert REFUSED in failure_texts(result)
    assert {event.step_key for event in result.get_step_failure_events()} == {"promoted_config"}
    assert not promotions(failing)


def test_an_evaluation_fails_only_if_what_serves_fell(indexed: Project) -> None:
    """A candidate and a reference under the threshold colour their checks, not the run."""
    report = dg.AssetKey("evaluation_report")
    assert indexed.run(CANDIDATE, PROMOTED).success
    assert indexed.run(CANDIDATE, REFERENCE, report).success
    indexed.corpus.ask(
        [{**question, "relevantNotes": [FILLER]} for question in indexed.corpus.questions()]
    )
    assert indexed.run(GOLDEN).success
    unjudged = indexed.run(report)
    assert unjudged.success
    said = materialised(unjudged, report)[None]["serving_verdict"]
    assert "No se ha podido juzgar «rapida», que sirve: su última evaluación está obsoleta" in said
    fell = indexed.run(CANDIDATE, REFERENCE, report)
    assert "«rapida», que sirve, ya no pasa: no pasa el control" in failure_texts(fell)
    assert materialised(fell, report)
    indexed.query("DELETE FROM promotions")
    assert indexed.run(CANDIDATE, REFERENCE, report).success


def test_nobody_gets_past_a_failed_gate(failing: Project) -> None:
    """Alone, by the job, by name and on the command line: the asset itself refuses."""
    assert failing.run(CANDIDATE).success
    assert REFUSED in failure_texts(failing.run(PROMOTED))
    assert REFUSED in failure_texts(failing.run(PROMOTED, run_config=NAMED))
    job = (
        definitions()
        .resolve_job_def("promote")
        .execute_in_process(instance=failing.instance, raise_on_error=False)
    )
    assert REFUSED in failure_texts(job)
    command = promote_by_command()
    assert command.returncode != 0
    assert REFUSED in command.stderr
    assert not promotions(failing)


def test_what_passes_is_promoted_once_and_not_on_old_evidence(indexed: Project) -> None:
    """A row per evaluation promoted; what is stale is measured again by the promotion itself."""
    assert "aún no se ha evaluado" in failure_texts(indexed.run(PROMOTED))
    result = indexed.run(CANDIDATE, PROMOTED)
    assert result.success, failure_texts(result)
    gate = evaluation(result, CANDIDATE, "hit_rate_gate")
    assert gate.passed
    assert gate.metadata[label("queries_to_settle")].value > 0
    promoted = materialised(result, PROMOTED)[None]
    assert (promoted["configuration"], promoted["changed"]) == ("rapida", True)
    assert "hybrid: aún no se ha evaluado" in promoted["refused"]
    assert promotions(indexed) == [("rapida",)]

    again = materialised(indexed.run(PROMOTED), PROMOTED)[None]
    assert (again["configuration"], again["changed"]) == ("rapida", False)
    assert promotions(indexed) == [("rapida",)]

    first, *others = indexed.corpus.questions()
    indexed.corpus.ask([first, *others, {**first, "query": f"{first['query']} Otra vez."}])
    assert indexed.run(GOLDEN).success
    said = indexed.check(CANDIDATE, "hit_rate_gate")
    assert str(said.description).startswith("Evaluación obsoleta: el conjunto de preguntas ha")
    anew = materialised(indexed.run(PROMOTED), PROMOTED)[None]
    assert (anew["evaluated_again"], anew["evidence"], anew["changed"]) == (
        "rapida",
        "actual",
        False,  # The same serves, on new figures.
    )
    [seen] = indexed.instance.fetch_observations(CANDIDATE, limit=1).records
    told = seen.asset_observation
    assert told
    assert told.metadata[label("evaluation_id")].value == anew["evaluation_id"]
    said = indexed.check(CANDIDATE, "hit_rate_gate")
    assert said.passed
    assert promotions(indexed) == [("rapida",), ("rapida",)]
    serving = indexed.query("SELECT m.name FROM embedding_models m WHERE m.state = 'serving'")
    assert serving == [("use_multilingual",)]


def test_a_copy_that_serves_less_is_not_promoted(
    indexed: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ranks the same, so only what users get tells them apart; asked by name, too."""
    text = (CONFIGURATIONS / "rapida.yaml").read_text("utf-8")
    (tmp_path / "rapida.yaml").write_text(text, "utf-8")
    copy = text.replace("name: rapida", "name: copia").replace(
        "    retrieval: 50", "    retrieval: 50\n    final: 1"
    )
    (tmp_path / "copia.yaml").write_text(copy, "utf-8")
    monkeypatch.setenv("RAG_CONFIGURATIONS", str(tmp_path))
    evaluated = dg.AssetKey(["evaluation_results", "copia"])

    assert indexed.run(CANDIDATE, evaluated, PROMOTED).success
    assert promotions(indexed) == [("rapida",)]
    rates = dict(
        indexed.query("SELECT configuration, (hit_rate_at_10, mrr) FROM evaluation_results")
    )
    assert rates["copia"] == rates["rapida"]
    named = {"ops": {"promoted_config": {"config": {"configuration": "copia"}}}}
    assert "Hit_Rate@final es peor" in failure_texts(indexed.run(PROMOTED, run_config=named))
    said = indexed.check(evaluated, "no_regression")
    assert not said.passed
    assert "Hit_Rate@final es peor" in str(said.description)


def test_what_a_person_reports_as_done_promotes_nothing(failing: Project) -> None:
    """As the buttons of the UI do: a check that passed, an evaluation and a promotion."""
    assert failing.run(CANDIDATE).success
    passed = dg.AssetCheckEvaluation(
        asset_key=CANDIDATE, check_name="hit_rate_gate", passed=True, metadata={}
    )
    for event in (passed, dg.AssetMaterialization(CANDIDATE), dg.AssetMaterialization(PROMOTED)):
        failing.instance.report_runless_asset_event(event)
    assert REFUSED in failure_texts(failing.run(PROMOTED))
    assert not promotions(failing)


def test_nothing_is_promoted_on_an_evaluation_of_an_index_that_is_gone(indexed: Project) -> None:
    """Rolled back, resumed, half backfilled: the promotion measures again, and refuses by that.

    What serves since the rollback was never evaluated, and is measured first.
    """
    assert indexed.run(CANDIDATE, PROMOTED).success
    passed = promotions(indexed)
    job(indexed, "rollback_immediate", "drop_migration", reason="Prueba.", confirm="borrar")
    job(indexed, "resume_migration", "lift_hold", reason="Prueba.")
    assert indexed.run(CHUNKS, EMBEDDINGS, months=MONTHS[2:]).success
    # Nor by a provisional chunk: half of the index is missing.
    indexed.query("DELETE FROM chunks WHERE id = note_id")
    before = indexed.query("SELECT max(hit_rate_at_10), count(*) FROM evaluation_results")
    refused = indexed.run(PROMOTED, run_config=NAMED)
    assert promotions(indexed)[: len(passed)] == passed
    assert promotions(indexed)[len(passed) :] == [("baseline",)]
    rates = indexed.query("SELECT hit_rate_at_10 FROM evaluation_results ORDER BY created_at")
    assert len(rates) == before[0][1] + 2
    assert rates[-1][0] < 0.85 <= before[0][0]
    assert f"rapida: no pasa el control, Hit_Rate@10 = {rates[-1][0]:.3f}" in failure_texts(refused)
