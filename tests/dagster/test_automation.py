"""Which months Dagster indexes by itself when notes change."""

from collections.abc import Iterator

import dagster as dg
import pytest

from rag_assets.definitions import build_defs
from rag_assets.keys import CHUNKS, MAIN_JOB, NOTE_EMBEDDINGS, NOTES, embeddings_key
from rag_assets.partitions import monthly
from rag_resources.settings import load_settings

pytestmark = pytest.mark.filterwarnings("ignore:.*backfill_policy:dagster.BetaWarning")

EARLY, LATER, NEVER = "2025-02-01", "2025-03-01", "2025-04-01"
FOLLOWERS = (NOTE_EMBEDDINGS, CHUNKS, embeddings_key("e5_small"))


class Ticks:
    """The automation of some assets, tick by tick, on an instance of its own."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self._defs = build_defs(load_settings(first_month="2025-01"))
        self._cursor = None

    def made(self, asset: dg.AssetKey, *months: str) -> None:
        """Materialise months of an asset."""
        for month in months:
            self.instance.report_runless_asset_event(
                dg.AssetMaterialization(asset, partition=month)
            )

    def requested(self, asset: dg.AssetKey) -> set[str | None]:
        """Return the months that the next tick asks for."""
        tick = dg.evaluate_automation_conditions(
            defs=self._defs,
            instance=self.instance,
            asset_selection=dg.AssetSelection.assets(*FOLLOWERS),
            cursor=self._cursor,
        )
        self._cursor = tick.cursor
        return set(tick.get_requested_partitions(asset))


@pytest.fixture
def ticks() -> Iterator[Ticks]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Ticks(instance)


def test_an_earlier_month_that_was_indexed_is_indexed_again_when_its_notes_change(
    ticks: Ticks,
) -> None:
    """A month that was never indexed waits for its backfill."""
    for asset in (NOTES, *FOLLOWERS):
        ticks.made(asset, EARLY, LATER)
    ticks.made(NOTES, NEVER)
    assert ticks.requested(CHUNKS) == set()
    ticks.made(NOTES, EARLY, NEVER)
    assert ticks.requested(CHUNKS) == {EARLY}
    assert ticks.requested(CHUNKS) == set(), "it is asked for once"


@pytest.mark.parametrize(("tags", "asked"), [({}, {EARLY}), ({MAIN_JOB: ""}, set())])
def test_what_the_main_job_ingests_is_indexed_by_the_main_job(
    ticks: Ticks, tags: dict[str, str], asked: set[str]
) -> None:
    """It ingests every month each time; indexing them all again would find nothing to do."""

    @dg.asset(key=NOTES, partitions_def=monthly(load_settings(first_month="2025-01")))
    def notes() -> None:
        """Stands for the product's asset."""

    for asset in (NOTES, *FOLLOWERS):
        ticks.made(asset, EARLY, LATER)
    assert ticks.requested(CHUNKS) == set()
    dg.materialize([notes], partition_key=EARLY, instance=ticks.instance, tags=tags)
    assert ticks.requested(CHUNKS) == asked
    assert ticks.requested(CHUNKS) == set()


def test_vectors_follow_the_chunks_of_their_month(ticks: Ticks) -> None:
    for asset in (NOTES, *FOLLOWERS):
        ticks.made(asset, EARLY, LATER)
    assert ticks.requested(CHUNKS) == set()
    ticks.made(CHUNKS, LATER)
    assert ticks.requested(embeddings_key("e5_small")) == {LATER}
