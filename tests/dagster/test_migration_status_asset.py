"""The asset `migration_status`: what it shows, and that it comes by itself after every batch."""

import dagster as dg
from dagster_project import CHUNKS, EMBEDDINGS, FILLER, MONTHS, Project, definitions

STATUS = dg.AssetKey("migration_status")


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
