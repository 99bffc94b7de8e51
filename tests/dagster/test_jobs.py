"""The ad hoc retrieval and the nightly evaluation, on a real instance."""

from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest
from dagster_project import CANDIDATE, QUIET, Project, defs, failure_texts

from rag_resources.core.messages import Message

QUESTION = "¿qué dijo el pediatra del virus?"


def ask(project: Project, **config: Any) -> dg.ExecuteInProcessResult:
    """Run the job `retrieve`."""
    return defs.resolve_job_def("retrieve").execute_in_process(
        instance=project.instance,
        raise_on_error=False,
        run_config={**QUIET, "ops": {"retrieve_passages": {"config": config}}},
    )


def output_metadata(result: dg.ExecuteInProcessResult) -> dict[str, dg.MetadataValue]:
    """Return what the op says of its output."""
    output = next(event for event in result.all_events if event.is_successful_output)
    return output.step_output_data.metadata


@pytest.mark.parametrize("strategy", ["semantic", "fulltext", "hybrid"])
def test_a_question_gives_a_table_of_passages(indexed: Project, strategy: str) -> None:
    """As many rows as asked for, best first, as Markdown, and the whole answer as JSON."""
    result = ask(indexed, question=QUESTION, configuration="hybrid_use", strategy=strategy, top_k=3)
    assert result.success, failure_texts(result)
    metadata = output_metadata(result)
    assert isinstance(metadata["results"], dg.MarkdownMetadataValue)
    rows = str(metadata["results"].value).splitlines()
    assert rows[0] == Message.TABLE_RESULTS
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| 1", "| 2", "| 3"]
    assert "Un virus" in "".join(rows[2:]) or "2025-02-09" in rows[2]
    assert metadata["strategy"].value == strategy
    answer = metadata["response"].value
    assert isinstance(answer, dict)
    assert len(answer["results"]) == 3


def test_without_a_configuration_the_promoted_one_answers(indexed: Project) -> None:
    """The launchpad's defaults are those of what serves."""
    assert indexed.run(CANDIDATE, dg.AssetKey("promoted_config")).success
    result = ask(indexed, question=QUESTION)
    assert result.success, failure_texts(result)
    assert output_metadata(result)["model"].value == "use_multilingual"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"question": QUESTION, "strategy": "mágica"}, "«mágica» no es una de las opciones"),
        ({"question": "  "}, Message.QUERY_BLANK),
        ({"question": QUESTION, "configuration": "otra"}, "ninguna configuración llamada «otra»"),
        ({"question": QUESTION}, "No hay nada indexado con el modelo «e5_small»"),
    ],
    ids=["strategy", "blank", "configuration", "model"],
)
def test_a_question_that_cannot_be_asked_fails_in_words(
    indexed: Project, config: dict[str, str], said: str
) -> None:
    result = ask(indexed, **config)
    assert not result.success
    assert said in failure_texts(result)


def test_the_launchpad_opens_with_an_example() -> None:
    """The job's own configuration is a question that can be run as it is."""
    default = defs.resolve_job_def("retrieve").run_config
    assert default is not None
    asked = default["ops"]["retrieve_passages"]["config"]
    assert asked["question"] == Message.EXAMPLE_QUESTION
    assert (asked["strategy"], asked["top_k"]) == ("hybrid", 5)


def test_the_nightly_evaluation_asks_for_a_run(project: Project) -> None:
    """A tick requests the job of every evaluation and the report."""
    schedule = defs.resolve_schedule_def("nightly_evaluation")
    with dg.build_schedule_context(
        instance=project.instance,
        scheduled_execution_time=datetime(2025, 5, 1, 1, tzinfo=UTC),
        repository_def=defs.get_repository_def(),
    ) as context:
        tick = schedule.evaluate_tick(context)
    assert tick.skip_message is None
    assert len(tick.run_requests) == 1
    selected = defs.resolve_job_def(schedule.job_name).asset_layer.selected_asset_keys
    names = {key.to_user_string() for key in selected}
    assert {"evaluation_report", "evaluation_results/rapida"} < names
    assert not names & {"golden_dataset", "promoted_config"}
