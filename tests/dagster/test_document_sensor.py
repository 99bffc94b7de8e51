"""The sensor of documents, tick by tick."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from rag_assets.assets.documents import build_documents_asset
from rag_assets.partitions import monthly
from rag_assets.sensors import SETTLED_NS, build_new_documents_sensor
from rag_resources.application import open_application
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.settings import load_settings
from tests.command_line import isolate
from tests.waiting import wait_until

pytestmark = pytest.mark.filterwarnings("ignore:.*backfill_policy:dagster.BetaWarning")

TODAY = datetime.now(tz=UTC)
THIS_MONTH = f"{TODAY:%Y-%m-01}"
EARLIER = TODAY.replace(day=1) - timedelta(days=40)
"""In a month that is past."""
FIRST = "dagster/asset_partition_range_start"
LAST = "dagster/asset_partition_range_end"


class NewDocuments:
    """The sensor over a folder; it keeps its cursor as the daemon does."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.folder = folder
        self.cursor: str | None = None
        self.instance = instance

    def write(self, name: str, text: str) -> None:
        """Write a file of the folder."""
        (self.folder / name).write_text(text, "utf-8")

    def tick(self) -> tuple[str, str] | str:
        """Return the range of months of the run requested, or why there is none."""
        paths = [self.folder, *self.folder.rglob("*")] if self.folder.exists() else []
        latest = max((path.stat().st_ctime_ns for path in paths), default=0)
        wait_until(lambda: time.time_ns() - latest > SETTLED_NS)
        sensor = build_new_documents_sensor(load_settings())
        with dg.build_sensor_context(instance=self.instance, cursor=self.cursor) as context:
            data = sensor.evaluate_tick(context)
        self.cursor = data.cursor or self.cursor
        if data.skip_message:
            return data.skip_message
        (request,) = data.run_requests
        return request.tags[FIRST], request.tags[LAST]


@pytest.fixture
def new_documents(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[NewDocuments]:
    """The sensor over a folder of two documents, none of which it has seen."""
    folder = tmp_path / "docs"
    folder.mkdir()
    isolate(
        monkeypatch,
        tmp_path,
        DATABASE_URL=database_url,
        FILES_URL=(tmp_path / "files").as_uri(),
        DOCUMENTS_SOURCE=str(folder),
        FIRST_MONTH=f"{EARLIER - timedelta(days=40):%Y-%m}",
    )
    with dg.DagsterInstance.ephemeral() as instance:
        made = NewDocuments(folder, instance)
        made.write("plan.txt", "El plan promete cien mil viviendas.")
        made.write("acta.txt", "Acta de la sesión ordinaria.")
        yield made


def test_a_new_file_asks_for_this_month_and_a_changed_one_for_that_of_its_arrival(
    new_documents: NewDocuments,
) -> None:
    unchanged = _("There is nothing to do.").format(path=new_documents.folder)
    assert new_documents.tick() == (THIS_MONTH, THIS_MONTH)
    assert new_documents.tick() == unchanged
    with open_application(load_settings()) as application:
        application.documents.arrive()
        with application.database.transaction() as connection:
            connection.execute(
                "UPDATE documents SET arrived_at = %s WHERE title = 'plan'", (EARLIER,)
            )
    new_documents.write("acta.txt", "Acta de la sesión extraordinaria.")
    assert new_documents.tick() == (THIS_MONTH, THIS_MONTH)
    new_documents.write("plan.txt", "Otro plan.")
    assert new_documents.tick() == (f"{EARLIER:%Y-%m-01}", THIS_MONTH)
    new_documents.write("foto.png", "No es un documento.")
    assert new_documents.tick() == unchanged


def test_what_a_run_over_all_months_has_read_is_not_read_again(
    new_documents: NewDocuments,
) -> None:
    """When the daemon starts afterwards; a file that came since then is."""
    settings = load_settings()
    keys = monthly(settings).get_partition_keys()
    read = dg.materialize(
        [build_documents_asset(settings)],
        instance=new_documents.instance,
        tags={FIRST: keys[0], LAST: keys[-1]},
        resources={"rag": RagResource(settings=settings)},
    )
    assert read.success
    unchanged = _("There is nothing to do.").format(path=new_documents.folder)
    assert new_documents.tick() == unchanged
    new_documents.write("carta.txt", "Una carta nueva.")
    assert new_documents.tick() == (THIS_MONTH, THIS_MONTH)
