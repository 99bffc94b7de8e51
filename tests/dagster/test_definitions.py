"""The definitions of the code location, and bad configurations, which are left out of it."""

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph, AssetNode
from dagster_project import CONFIGURATIONS

from rag_assets.assets.evaluation import build_evaluation_asset
from rag_assets.configured import read_configured
from rag_assets.definitions import build_defs
from rag_assets.keys import CHUNKS, GOLDEN_DATASET, evaluation_key
from rag_resources.settings import load_settings

NAMES = (
    "baseline",
    "fulltext",
    "hybrid",
    "hybrid_use",
    "hybrid_weighted",
    "hybrid_windows",
    "rapida",
    "semantic",
)
OF_E5 = ("hybrid", "hybrid_weighted", "hybrid_windows", "semantic")
MODELS = ("e5_small", "use_multilingual")

OWN = """
name: propia
description: De las pruebas.
role: candidate
retrieval:
  {key}: hybrid
  model: {model}
"""


@pytest.fixture(scope="module")
def defs() -> dg.Definitions:
    """The definitions of default settings and a folder of configurations."""
    return build_defs(load_settings(rag_configurations=CONFIGURATIONS))


@pytest.fixture(scope="module")
def graph(defs: dg.Definitions) -> AssetGraph:
    """The graph of assets and checks."""
    return defs.resolve_asset_graph()


def test_months_are_the_partitions_of_what_is_indexed(graph: AssetGraph) -> None:
    """All indexing assets have monthly partitions in batches of six; evaluations have none."""
    partitioned = {
        key.to_user_string(): graph.get(key).backfill_policy.max_partitions_per_run
        for key in graph.get_all_asset_keys()
        if graph.get(key).partitions_def
    }
    indexed = {
        "documents",
        "document_pages",
        "notes",
        "note_embeddings",
        "chunks",
        "mentions",
        "causal_statements",
        *(f"embeddings/{model}" for model in MODELS),
        "answer_log",
    }
    assert partitioned == dict.fromkeys(indexed, 6)


def test_the_definitions_hold_together(defs: dg.Definitions) -> None:
    """Every job resolves, and none of its assets lacks what it depends on."""
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    missing = {
        key.to_user_string(): parent.to_user_string()
        for key in graph.materializable_asset_keys
        for parent in graph.get(key).parent_keys
        if parent not in graph.materializable_asset_keys
    }
    assert missing == {}
    assert graph.materializable_asset_keys


def test_a_typo_in_a_configuration_leaves_it_alone_out(tmp_path: Path) -> None:
    """The others are assets; the problem names file, line and key."""
    path = tmp_path / "propia.yaml"
    path.write_text(OWN.format(key="stratgy", model="e5_small"), "utf-8")
    settings = load_settings(rag_configurations=tmp_path)
    keys = build_defs(settings).resolve_asset_graph().materializable_asset_keys
    assert evaluation_key("hybrid_windows") in keys
    assert evaluation_key("propia") not in keys

    [told] = read_configured(settings).configurations.problems
    assert f"{path}: línea 6: retrieval.stratgy" in told


def test_configurations_of_a_model_that_is_switched_off_are_named() -> None:
    """`rag run` says why they are missing from its table."""
    configured = read_configured(load_settings(embedding_models=["use_multilingual"]))
    off = configured.configurations.switched_off
    assert "hybrid_windows" in off
    assert "hybrid_use" not in off
    assert not set(off) & set(configured.configurations)
    assert "fulltext" in configured.configurations, "it searches by words alone"
    asset = build_evaluation_asset(configured.configurations["fulltext"])
    assert asset.dependency_keys == {GOLDEN_DATASET, CHUNKS}


def test_two_settings_have_their_own_definitions_in_one_process() -> None:
    """Models, configurations, gates, months and the version of chunks belong to the settings."""
    full = build_defs(load_settings(rag_configurations=CONFIGURATIONS, first_month="2025-01"))
    small = build_defs(
        load_settings(
            rag_configurations=CONFIGURATIONS,
            first_month="2026-03",
            embedding_models=["use_multilingual"],
            chunking_max_tokens=256,
            gate={"hit_rate_at_10": 0.5},
        )
    )

    def keys(location: dg.Definitions) -> set[str]:
        return {key.to_user_string() for key in location.resolve_asset_graph().get_all_asset_keys()}

    def selected(location: dg.Definitions, job: str) -> set[str]:
        found = location.resolve_job_def(job).asset_layer.selected_asset_keys
        return {key.to_user_string() for key in found}

    def chunks(location: dg.Definitions) -> AssetNode:
        return location.resolve_asset_graph().get(dg.AssetKey("chunks"))

    assert keys(full) - keys(small) == {
        "embeddings/e5_small",
        *(f"evaluation_results/{name}" for name in NAMES if name in OF_E5),
    }
    assert keys(small) < keys(full)
    assert selected(full, "index") == {
        "chunks",
        "mentions",
        "causal_statements",
        *(f"embeddings/{model}" for model in MODELS),
    }
    assert selected(small, "index") == {
        "chunks",
        "mentions",
        "causal_statements",
        "embeddings/use_multilingual",
    }
    assert selected(small, "evaluate") == {
        "evaluation_report",
        *(f"evaluation_results/{name}" for name in NAMES if name not in OF_E5),
    }
    assert chunks(full).partitions_def.get_first_partition_key() == "2025-01-01"
    assert chunks(small).partitions_def.get_first_partition_key() == "2026-03-01"
    assert chunks(full).code_version != chunks(small).code_version
    assert full.resources["rag"].settings != small.resources["rag"].settings
