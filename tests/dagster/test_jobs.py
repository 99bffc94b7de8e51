"""The ad hoc retrieval and the nightly evaluation, on a real instance."""

from datetime import UTC, datetime
from typing import Any

import dagster as dg
import pytest
from dagster_project import Project, definitions, failure_texts

from rag_resources.core.markdown import plain
from rag_resources.languages.labels import label
from rag_resources.languages.messages import _

QUESTION = "¿qué dijo el pediatra del virus?"


def ask(project: Project, **config: Any) -> dg.ExecuteInProcessResult:
    """Run the job `retrieve`."""
    return (
        definitions()
        .resolve_job_def("retrieve")
        .execute_in_process(
            instance=project.instance,
            raise_on_error=False,
            run_config={"ops": {"retrieve_passages": {"config": config}}},
        )
    )


def output_metadata(result: dg.ExecuteInProcessResult) -> dict[str, dg.MetadataValue]:
    """Return what the op says of its output."""
    output = next(event for event in result.all_events if event.is_successful_output)
    return output.step_output_data.metadata


def answered(project: Project, **config: Any) -> dict[str, dg.MetadataValue]:
    """Return what the job `ask` says of its answer."""
    result = (
        definitions()
        .resolve_job_def("ask")
        .execute_in_process(
            instance=project.instance,
            raise_on_error=False,
            run_config={
                "ops": {"answer_question": {"config": {"configuration": "hybrid_use", **config}}},
            },
        )
    )
    assert result.success, failure_texts(result)
    return output_metadata(result)


def test_a_question_is_answered_with_sentences_and_sources(indexed: Project) -> None:
    """The answer is Markdown, with the sources below, and JSON."""
    metadata = answered(indexed, question=QUESTION)
    assert metadata[label("reading")].value == "–"
    assert isinstance(metadata[label("answer")], dg.MarkdownMetadataValue)
    answer = str(metadata[label("answer")].value)
    assert "[1]" in answer
    assert "**" + _("Sources") + "**" in answer
    uncalibrated = _(
        "Not calibrated, so that what the notes do not say is sometimes answered, too: {reason}"
    ).format(
        reason=_(
            "“rag calibrate” is missing, which takes 20 questions that succeed and 20 that fail"
        )
    )
    assert metadata[label("confidence")].value == uncalibrated
    whole = metadata[label("response")].value
    assert isinstance(whole, dict)
    assert whole["found"]
    cited = whole["sentences"][0]["citations"][0]["externalId"]
    indexed.query("UPDATE notes SET title = ''")
    untitled = str(answered(indexed, question=QUESTION)[label("answer")].value)
    assert f"1. {plain(cited)} · " in untitled


def test_an_answer_says_what_was_searched_and_conditions_can_be_revoked(indexed: Project) -> None:
    turn = "¿Qué pasó con la furgoneta en abril de 2025?"
    again = {"question": "¿Quién lo trajo?", "conversation": [turn]}
    carried = f"{turn} ¿Quién lo trajo?"
    searched = _("Searched: “{searched}”").format(searched=carried)
    told = str(answered(indexed, **again)[label("reading")].value).splitlines()
    assert told[0] == searched
    assert "en abril de 2025" in told[1]
    revoked = answered(indexed, **again, ignored=["en abril de 2025"])
    assert revoked[label("reading")].value == searched


@pytest.mark.parametrize("strategy", ["semantic", "fulltext", "hybrid"])
def test_a_question_gives_a_table_of_passages(indexed: Project, strategy: str) -> None:
    """As many rows as asked for, best first, as Markdown, and the whole answer as JSON."""
    # Without the triggers of an edit: the chunks stay.
    indexed.query(
        "DO $$ BEGIN SET LOCAL session_replication_role = replica;"
        " UPDATE notes SET title = ''; END $$"
    )
    result = ask(indexed, question=QUESTION, configuration="hybrid_use", strategy=strategy, top_k=3)
    assert result.success, failure_texts(result)
    metadata = output_metadata(result)
    assert isinstance(metadata[label("results")], dg.MarkdownMetadataValue)
    rows = str(metadata[label("results")].value).splitlines()
    assert rows[0] == _("| # | score | date | title | passage | method |")
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| 1", "| 2", "| 3"]
    if strategy != "semantic":  # The small model alone does not find it among the first three.
        assert any("9 feb 2025" in row for row in rows[2:])
    assert metadata[label("strategy")].value == strategy
    answer = metadata[label("response")].value
    assert isinstance(answer, dict)
    assert len(answer["results"]) == 3
    names = [plain(found["externalId"]) for found in answer["results"]]
    assert all(f"| [{name}](/assets" in row for name, row in zip(names, rows[2:], strict=True))


def test_overrides_and_filters_of_the_launchpad_count(indexed: Project) -> None:
    """Fields at any depth; only notes that meet every condition are searched."""
    result = ask(
        indexed,
        question="¿Qué virus tuvo Vera? ¿Y qué dijo el pediatra?",
        configuration="hybrid_use",
        overrides={
            "strategy": "hybrid+rerank",
            "top_k": {"final": 4},
            "transformation": {"decomposition": True},
        },
        filters={"created_from": "2025-02-01", "created_until": "2025-03-01"},
    )
    assert result.success, failure_texts(result)
    metadata = output_metadata(result)
    assert metadata[label("strategy")].value == "hybrid+rerank"
    assert metadata["ms de reordenación"].value > 0
    assert str(metadata[label("searched_beside")].value).splitlines() == [
        "¿Qué virus tuvo Vera?",
        "¿Y qué dijo el pediatra?",
    ]
    rows = str(metadata[label("results")].value).splitlines()[2:]
    assert 0 < len(rows) <= 4
    assert all(" feb 2025 |" in row and "reordenación" in row for row in rows)
    assert (metadata[label("degraded")].value, metadata[label("messages")].value) == ("–", "–")


def test_the_nightly_evaluation_asks_for_a_run(project: Project) -> None:
    """A tick requests the job of every evaluation and the report."""
    schedule = definitions().resolve_schedule_def("nightly_evaluation")
    with dg.build_schedule_context(
        instance=project.instance,
        scheduled_execution_time=datetime(2025, 5, 1, 1, tzinfo=UTC),
        repository_def=definitions().get_repository_def(),
    ) as context:
        tick = schedule.evaluate_tick(context)
    assert tick.skip_message is None
    assert len(tick.run_requests) == 1
    selected = definitions().resolve_job_def(schedule.job_name).asset_layer.selected_asset_keys
    names = {key.to_user_string() for key in selected}
    assert {"evaluation_report", "evaluation_results/rapida"} < names
    assert not names & {"golden_dataset", "promoted_config"}
