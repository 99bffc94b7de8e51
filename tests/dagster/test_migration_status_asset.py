"""The asset `migration_status`: what it shows, and that it comes by itself after every batch."""

import dagster as dg
from dagster_project import CHUNKS, EMBEDDINGS, FILLER, MONTHS, Project, definitions, materialised

STATUS = dg.AssetKey("migration_status")


def test_it_shows_numbers_and_tables(indexed: Project) -> None:
    """Numbers that Dagster plots over time."""
    assert indexed.run(EMBEDDINGS, months=MONTHS[:2]).success
    result = indexed.run(STATUS)
    assert result.success
    shown = materialised(result, STATUS)[None]
    assert (shown["notes"], shown["migrated"], shown["remaining"]) == (16, 16, 0)
    assert shown["percent_migrated"] == shown["percent_use_multilingual"] == 100
    assert shown["percent_e5_small"] == 0
    assert 0 <= shown["hit_rate_at_10"] <= 1
    assert shown["latency_p95_ms"] > 0
    assert shown["closed_gates"] == 0
    assert "baseline_hit_rate_at_10" not in shown
    assert "16 de 16 notas migradas" in shown["summary"]
    assert "| 2025-01 |" in shown["tables"]


def test_it_comes_after_every_batch_that_was_measured_or_failed(indexed: Project) -> None:
    """Though most months have no vectors yet; not after a batch of chunks, nor twice."""
    cursor, location = None, definitions()

    def requested() -> bool:
        nonlocal cursor
        tick = dg.evaluate_automation_conditions(
            location,
            instance=indexed.instance,
            asset_selection=dg.AssetSelection.assets(STATUS),
            cursor=cursor,
        )
        cursor = tick.cursor
        return tick.get_num_requested(STATUS) == 1

    assert not requested()
    assert indexed.run(CHUNKS, months=MONTHS[:1]).success
    assert not requested()
    assert indexed.run(EMBEDDINGS, months=MONTHS[:1]).success
    assert requested()
    assert indexed.run(STATUS).success
    assert not requested()
    indexed.query("UPDATE notes SET content = content || ' Más.' WHERE external_id = %s", FILLER)
    assert indexed.run(CHUNKS, months=MONTHS[-1:]).success
    indexed.query("UPDATE embedding_models SET digest = 'otro' WHERE name = 'use_multilingual'")
    assert not indexed.run(EMBEDDINGS, months=MONTHS[-1:]).success
    assert requested()
