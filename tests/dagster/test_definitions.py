"""What the code location offers, and that a bad configuration keeps it from loading."""

import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph
from dagster_project import defs

from rag_assets import configured
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.messages import Message
from rag_resources.settings import load_settings

NAMES = ("baseline", "fulltext", "hybrid", "hybrid_use", "hybrid_weighted", "rapida", "semantic")
CANDIDATES = ("hybrid", "hybrid_weighted", "rapida")
MODELS = ("e5_small", "use_multilingual")

OWN = """
name: propia
description: De las pruebas.
role: candidate
retrieval:
  {key}: hybrid
  model: {model}
"""

GROUPS = {
    "notes": "ingestion",
    "note_embeddings": "ingestion",
    "chunks": "indexing",
    **{f"embeddings/{model}": "indexing" for model in MODELS},
    "migration_status": "indexing",
    "golden_dataset": "evaluation",
    **{f"evaluation_results/{name}": "evaluation" for name in NAMES},
    "evaluation_report": "evaluation",
    "promoted_config": "serving",
}

CHECKS = {
    "notes:notes_inside_partitions": False,
    "chunks:chunk_integrity": True,
    **{f"embeddings/{model}:embeddings_complete": True for model in MODELS},
    **{f"embeddings/{model}:batch_equals_single": False for model in MODELS},
    **{f"embeddings/{model}:retrieval_quality": False for model in MODELS},
    "golden_dataset:golden_valid": True,
    "golden_dataset:golden_drift": False,
    **{f"evaluation_results/{name}:hit_rate_gate": name in CANDIDATES for name in NAMES},
    **{f"evaluation_results/{name}:hit_rate_settled": False for name in NAMES},
    **{f"evaluation_results/{name}:latency_gate": name in CANDIDATES for name in NAMES},
    **{f"evaluation_results/{name}:no_regression": False for name in NAMES},
}


@pytest.fixture(scope="module")
def graph() -> AssetGraph:
    """The graph of assets and checks."""
    return defs.resolve_asset_graph()


def test_the_assets_and_their_groups(graph: AssetGraph) -> None:
    """One asset per model and per configuration, the file of the user's own folder included."""
    found = {key.to_user_string(): graph.get(key).group_name for key in graph.get_all_asset_keys()}
    assert found == GROUPS


def test_every_asset_says_whose_and_what_it_is(graph: AssetGraph) -> None:
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.owners == ["team:datos"], key
        assert node.kinds, key
        assert node.description, key


def test_the_checks_and_which_of_them_block(graph: AssetGraph) -> None:
    """Gates block candidates only; what merely measures never blocks."""
    found = {
        f"{key.asset_key.to_user_string()}:{key.name}": graph.get(key).blocking
        for key in graph.asset_check_keys
    }
    assert found == CHECKS
    assert all(graph.get(key).description for key in graph.asset_check_keys)


def test_months_are_the_partitions_of_what_is_indexed(graph: AssetGraph) -> None:
    """All of it shares them, in batches of six; evaluations have none."""
    partitioned = {
        key.to_user_string(): graph.get(key).backfill_policy.max_partitions_per_run
        for key in graph.get_all_asset_keys()
        if graph.get(key).partitions_def
    }
    indexed = {"notes", "note_embeddings", "chunks", *(f"embeddings/{model}" for model in MODELS)}
    assert partitioned == dict.fromkeys(indexed, 6)


def test_jobs_schedules_and_sensors() -> None:
    """What runs by itself is switched on."""
    jobs = {job.name for job in defs.resolve_all_job_defs() if not job.name.startswith("__")}
    assert jobs == {
        "ingest",
        "golden",
        "index",
        "evaluate",
        "promote",
        "retrieve",
        "archive_evaluations",
        "compare",
        "purge_expired",
        "rollback_immediate",
        "rollback_partial",
        "rollback_promotion",
        "resume_migration",
        "retire_model",
    }
    for name, cron in (
        ("nightly_evaluation", "0 3 * * *"),
        ("nightly_archive", "40 4 * * *"),
        ("hourly_purge", "17 * * * *"),
    ):
        schedule = defs.resolve_schedule_def(name)
        assert schedule.cron_schedule == cron
        assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    for name in ("new_notes", "failed_runs", "automation"):
        sensor = defs.resolve_sensor_def(name)
        assert sensor.default_status is dg.DefaultSensorStatus.RUNNING, name


def test_the_definitions_hold_together() -> None:
    dg.Definitions.validate_loadable(defs)


def test_a_typo_in_a_configuration_keeps_the_location_from_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file and the key."""
    path = tmp_path / "propia.yaml"
    path.write_text(OWN.format(key="stratgy", model="e5_small"), "utf-8")
    monkeypatch.setenv("RAG_CONFIGURATIONS", str(tmp_path))
    loading = subprocess.run(
        [sys.executable, "-c", "import rag_assets.definitions"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert loading.returncode != 0
    assert f"{path}: retrieval.stratgy: {Message.PROBLEM_UNKNOWN_KEY}" in loading.stderr


def test_a_configuration_of_an_unknown_model_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the configuration, and the models there are."""
    (tmp_path / "propia.yaml").write_text(OWN.format(key="strategy", model="e5_smal"), "utf-8")
    monkeypatch.setenv("RAG_CONFIGURATIONS", str(tmp_path))
    monkeypatch.setattr(configured, "settings", load_settings)
    with pytest.raises(InvalidConfigurationError) as refused:
        configured.configurations.__wrapped__()
    said = Message.CONFIGURATION_MODEL.format(model="e5_smal", known=", ".join(MODELS))
    assert refused.value.problems == [f"propia: {said}"]
