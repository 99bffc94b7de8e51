"""Quality made worse on purpose: it is caught, it stops the promotion, and its cause is named."""

import dagster as dg
import pytest
from dagster_project import (
    CANDIDATE,
    EMBEDDINGS,
    FILLER,
    GOLDEN,
    PROMOTED,
    QUIET,
    Project,
    defs,
    evaluation,
    failure_texts,
)

from rag_assets.configured import configurations
from rag_resources.application import open_application
from rag_resources.core.configuration import RetrievalConfig, with_overrides
from rag_resources.evaluation.runner import evaluate
from rag_resources.settings import load_settings

RAPIDA = configurations()["rapida"].retrieval


@pytest.fixture
def serving(indexed: Project) -> Project:
    """A project whose candidate passed its gates and serves."""
    result = indexed.run(CANDIDATE, PROMOTED)
    assert result.success, failure_texts(result)
    assert evaluation(result, CANDIDATE, "no_regression").passed
    return indexed


def regression(project: Project) -> dg.AssetCheckEvaluation:
    """What the check says of the latest evaluation."""
    return project.check(CANDIDATE, "no_regression")


def shown(said: dg.AssetCheckEvaluation, name: str) -> str:
    """A table of its metadata."""
    return str(said.metadata[name].value)


def evaluate_candidate(config: RetrievalConfig) -> None:
    """Store an evaluation of the candidate as it would be with another configuration."""
    with open_application(load_settings()) as application:
        evaluate(application.database, application.pipeline, "rapida", config)


def test_a_worse_configuration_is_caught_and_named(serving: Project) -> None:
    """It is not promoted in its own name either."""
    evaluate_candidate(with_overrides(RAPIDA, {"similarity_threshold": 1, "strategy": "semantic"}))
    said = regression(serving)
    assert (said.passed, said.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert said.metadata["state"].value == "inferior"
    assert "| similarity_threshold | – | 1.0 |" in shown(said, "changes")
    assert "no se materializó ningún mes" in shown(said, "months")
    assert not serving.run(PROMOTED).success


def test_shuffled_vectors_are_caught_and_their_month_is_blamed(serving: Project) -> None:
    """The vectors of one month, each given to a chunk of another note, and a run that says so."""
    month = serving.query(
        "SELECT to_char(n.created_at AT TIME ZONE 'UTC', 'YYYY-MM-01') FROM golden_dataset AS g,"
        " unnest(g.relevant_note_ids) AS r (id) JOIN notes AS n USING (id)"
        " GROUP BY 1 ORDER BY count(DISTINCT g.id) DESC, 1 LIMIT 1"
    )[0][0]
    before = serving.query("SELECT count(*) FROM chunk_embeddings")
    for column in ("embedding", "contextual_embedding"):
        serving.query(
            f"UPDATE chunk_embeddings AS e SET {column} = (SELECT array_agg(-x)::halfvec"
            f" FROM unnest(e.{column}::real[]) AS x) FROM chunks AS c JOIN notes AS n"
            " ON n.id = c.note_id WHERE c.id = e.chunk_id"
            f" AND to_char(n.created_at AT TIME ZONE 'UTC', 'YYYY-MM-01') = '{month}'"
        )
    assert serving.query("SELECT count(*) FROM chunk_embeddings") == before
    serving.instance.report_runless_asset_event(
        dg.AssetMaterialization(EMBEDDINGS, partition=month, metadata={"migrated": 4})
    )
    evaluate_candidate(with_overrides(RAPIDA, {"strategy": "semantic"}))
    said = regression(serving)
    assert said.metadata["lost"].value > 0
    blamed = shown(said, "months").splitlines()[2]
    assert blamed.startswith(f"| {month[:7]} | embeddings/use_multilingual |")
    own = int(blamed.split("|")[3])
    assert own == said.metadata["lost"].value, shown(said, "months")
    assert "versión del índice" in shown(said, "changes")


def test_edited_questions_are_caught_and_not_taken_for_a_regression(serving: Project) -> None:
    """The gate fails, nothing is promoted, and the comparison leaves out what was edited."""
    first, *others = serving.corpus.questions()
    edited = [{**question, "relevantNotes": [FILLER]} for question in others]
    serving.corpus.ask([first, *edited])
    assert serving.run(GOLDEN).success
    stale = serving.run(PROMOTED)
    assert "el conjunto de preguntas ha cambiado" in failure_texts(stale)
    result = serving.run(CANDIDATE)
    assert not evaluation(result, CANDIDATE, "hit_rate_gate").passed
    said = evaluation(result, CANDIDATE, "no_regression")
    assert said.passed
    assert said.metadata["queries"].value == 1
    assert "conjunto de preguntas" in shown(said, "changes")
    assert not serving.run(PROMOTED).success


def test_the_job_compares_two_evaluations(serving: Project) -> None:
    evaluate_candidate(with_overrides(RAPIDA, {"top_k": {"final": 3}}))
    first, last = (
        row[0]
        for row in serving.query("SELECT id::text FROM evaluation_results ORDER BY created_at")
    )
    config = {"before": first[:8], "after": last[:8]}
    result = defs.resolve_job_def("compare").execute_in_process(
        instance=serving.instance,
        run_config={**QUIET, "ops": {"compare_evaluations": {"config": config}}},
    )
    [output] = [
        event.event_specific_data.metadata
        for event in result.get_step_success_events()
        for event in result.events_for_node("compare_evaluations")
        if event.event_type_value == "STEP_OUTPUT"
    ]
    assert "| top_k.final | 5 | 3 |" in str(output["changes"].value)
    assert "Hit_Rate@10" in str(output["comparison"].value)
