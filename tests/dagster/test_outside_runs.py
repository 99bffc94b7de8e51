"""What is done without a run, as by the command line, is shown in Dagster, and starts nothing."""

import json
from collections.abc import Iterator
from datetime import datetime

import dagster as dg
import psycopg
import pytest
from dagster._serdes import deserialize_value, serialize_value
from dagster_project import (
    CANDIDATE,
    FILLER,
    GOLDEN,
    PROMOTED,
    Fields,
    Project,
    by_field,
    definitions,
    evaluation,
    materialised,
)

from rag_assets import sensors
from rag_resources.application import Application, open_application
from rag_resources.languages.labels import label
from rag_resources.languages.messages import _
from rag_resources.settings import load_settings

OTHERS = ("hybrid", "hybrid_weighted")


@pytest.fixture
def application(indexed: Project) -> Iterator[Application]:
    """What a command of the command line works with."""
    with open_application(load_settings()) as opened:
        yield opened


class Sensor:
    """The sensor with its cursor; it reports what a tick returns, as the daemon does."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance
        self.cursor: str | None = None

    def tick(self) -> list[dg.AssetObservation | dg.AssetCheckEvaluation]:
        """Return what is reported, after it has gone from process to process as text."""
        events, self.cursor = self.evaluate()
        for event in events:
            self._instance.report_runless_asset_event(event)
        return events

    def evaluate(
        self,
    ) -> tuple[list[dg.AssetObservation | dg.AssetCheckEvaluation], str | None]:
        """Return what a tick would report and the cursor after it; a failed tick does no more."""
        location = definitions()
        with dg.build_sensor_context(
            instance=self._instance, cursor=self.cursor, definitions=location
        ) as context:
            data = location.resolve_sensor_def("outside_runs").evaluate_tick(context)
        data = deserialize_value(serialize_value(data))
        assert not data.run_requests
        assert (data.skip_message == _("There is nothing to do.")) == (data.cursor == self.cursor)
        return list(data.asset_events), data.cursor or self.cursor


@pytest.fixture
def sensor(indexed: Project) -> Sensor:
    """The sensor of a fresh instance."""
    return Sensor(indexed.instance)


def observed(project: Project, key: dg.AssetKey) -> list[Fields]:
    """Return the metadata of an asset's observations in Dagster's log, oldest first."""
    records = project.instance.fetch_observations(key, limit=100).records
    found = [record.event_log_entry.asset_observation for record in reversed(records)]
    return [by_field(item.metadata) for item in found if item]


def serving_page(project: Project) -> Fields:
    """Return what the page of `promoted_config` shows first: its last materialisation."""
    [last] = project.instance.fetch_materializations(PROMOTED, limit=1).records
    assert last.asset_materialization
    return by_field(last.asset_materialization.metadata)


def evaluate(application: Application, name: str = "rapida") -> str:
    """Evaluate as `rag evaluate` does; return the evaluation's id."""
    made = application.evaluations.run(application.configuration(name))
    return str(made.evaluation_id)


def promotion_requested(project: Project, cursor: object = None) -> tuple[bool, object]:
    """Return whether automation asks for a promotion, and the cursor of the next tick."""
    tick = dg.evaluate_automation_conditions(
        defs=definitions(),
        instance=project.instance,
        asset_selection=dg.AssetSelection.assets(PROMOTED),
        cursor=cursor,
    )
    return tick.total_requested > 0, tick.cursor


def test_an_evaluation_shows_what_a_run_would_have_shown(
    indexed: Project, application: Application, sensor: Sensor
) -> None:
    """The same figures and the verdicts of every gate, once; that of a run is not told again."""
    assert sensor.tick() == []
    run = indexed.run(CANDIDATE)
    shown = materialised(run, CANDIDATE)[None]
    assert sensor.tick() == []

    made = evaluate(application)
    sensor.tick()
    [told] = observed(indexed, CANDIDATE)
    assert told["evaluation_id"] == made
    assert shown.keys() - told.keys() == {"etapas"}
    assert [told[name] for name in ("mrr", "gate", "breakdown", "citation_precision")] == [
        shown[name] for name in ("mrr", "gate", "breakdown", "citation_precision")
    ]
    for name in ("hit_rate_gate", "latency_gate", "no_regression", "silence_gate"):
        key = dg.AssetCheckKey(CANDIDATE, name)
        [record] = indexed.instance.event_log_storage.get_asset_check_execution_history(key, 1)
        of_run = evaluation(run, CANDIDATE, name)
        assert record.run_id == ""
        assert record.evaluation
        assert (record.evaluation.passed, record.evaluation.severity) == (
            of_run.passed,
            of_run.severity,
        )
    assert sensor.tick() == []
    assert len(observed(indexed, CANDIDATE)) == 1
    judged = evaluation(run, CANDIDATE, "hit_rate_gate")
    assert "Hit_Rate@1 = " in str(judged.description), "a twentieth of 16 notes"
    silence = evaluation(run, CANDIDATE, "silence_gate")
    assert silence.metadata[label("state")].value == _("not measured"), "too few questions"
    assert silence.passed


def test_a_promotion_and_a_rollback_are_shown(
    indexed: Project, application: Application, sensor: Sensor
) -> None:
    """With the figures that were promoted on, and with the reason of the rollback."""
    made = evaluate(application)
    application.serving.promote(application.configurations, name="rapida", run_id=None)
    later = evaluate(application)
    assert later != made
    sensor.tick()
    told = serving_page(indexed)
    assert (told["configuration"], told["evaluation_id"]) == ("rapida", made)
    assert "evidence" not in told, "it was current then, and may not be when this is told"
    assert told["mrr"] == observed(indexed, CANDIDATE)[0]["mrr"]
    baseline = application.configuration("baseline")
    application.serving.roll_back_to_notes(
        baseline, reason="Peor", run_id=None, accept_missing=1000
    )
    sensor.tick()
    back = serving_page(indexed)
    assert (back["configuration"], back["rollback_reason"]) == ("baseline", "Peor")
    assert "evaluation_id" not in back
    assert sensor.tick() == []


def test_history_is_told_in_order_a_part_each_tick(
    indexed: Project,
    application: Application,
    sensor: Sensor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also of one moment; a failed tick loses nothing, and only the latest has verdicts."""
    monkeypatch.setattr(sensors, "PER_TICK", 2)
    made = [evaluate(application) for __ in range(3)]
    with psycopg.connect(indexed.database_url) as connection:
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute("UPDATE evaluation_results SET created_at = '2025-05-01'")
    ordered = sorted(made)
    [latest, *_] = ordered  # Of one moment the first id counts as the latest.
    events, _ = sensor.evaluate()
    assert [type(event) for event in events].count(dg.AssetObservation) == 2
    sensor.tick()
    assert [item["evaluation_id"] for item in observed(indexed, CANDIDATE)] == ordered[:2]
    read = json.loads(sensor.cursor or "")
    assert read["evaluation"][1] == ordered[1]
    sensor.tick()
    told = observed(indexed, CANDIDATE)
    assert [item["evaluation_id"] for item in told] == ordered
    assert told[0]["evaluated_at"] == datetime.fromisoformat("2025-05-01T00:00:00Z").timestamp()
    history = indexed.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(CANDIDATE, "hit_rate_gate"), 10
    )
    assert len(history) == 1
    assert str(application.evaluations.latest("rapida").evaluation_id) == latest
    assert sensor.tick() == []


def test_what_is_committed_late_is_not_passed_over(
    indexed: Project, application: Application, sensor: Sensor
) -> None:
    """A row bears the time at which its transaction began, perhaps before one that is shown."""
    with psycopg.connect(indexed.database_url) as late:
        late.execute("SELECT now()")
        made = evaluate(application)
        assert sensor.tick() == [], "an older row may still be committed"
        late.execute("CREATE TEMP TABLE copied ON COMMIT DROP AS SELECT * FROM evaluation_results")
        late.execute("UPDATE copied SET id = gen_random_uuid(), created_at = now()")
        late.execute("INSERT INTO evaluation_results SELECT * FROM copied")
    sensor.tick()
    told = [item["evaluation_id"] for item in observed(indexed, CANDIDATE)]
    assert (len(told), told[-1]) == (2, made)


def test_nothing_told_here_promotes_by_itself(
    indexed: Project,
    application: Application,
    sensor: Sensor,
) -> None:
    """Not even while a promotion waits for a gate that a run did not pass; a run's pass does."""
    for name in (*OTHERS, "hybrid_windows"):
        key = dg.AssetKey(["evaluation_results", name])
        indexed.instance.report_runless_asset_event(dg.AssetMaterialization(key))
    _, cursor = promotion_requested(indexed)
    questions = indexed.corpus.questions()
    indexed.corpus.ask([{**question, "relevantNotes": [FILLER]} for question in questions])
    assert not evaluation(indexed.run(GOLDEN, CANDIDATE), CANDIDATE, "hit_rate_gate").passed
    waits, cursor = promotion_requested(indexed, cursor)
    assert not waits

    indexed.corpus.ask(questions)
    assert indexed.run(GOLDEN).success
    evaluate(application)
    events = sensor.tick()
    gate = next(
        event
        for event in events
        if isinstance(event, dg.AssetCheckEvaluation) and event.check_name == "hit_rate_gate"
    )
    assert gate.passed
    requested, cursor = promotion_requested(indexed, cursor)
    assert not requested

    assert evaluation(indexed.run(CANDIDATE), CANDIDATE, "hit_rate_gate").passed
    requested, _ = promotion_requested(indexed, cursor)
    assert requested
