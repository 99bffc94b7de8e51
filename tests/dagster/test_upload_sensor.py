"""The sensor of uploaded documents, tick by tick."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest

from rag_assets.documents.uploads import build_uploaded_documents_sensor
from rag_resources.application import open_application
from rag_resources.database.pool import Database
from rag_resources.documents.uploads import check_upload, register
from rag_resources.files import LocalFiles
from rag_resources.languages.messages import _
from rag_resources.settings import load_settings
from rag_resources.store.document_list import ALWAYS
from tests.command_line import isolate

THIS_MONTH = f"{datetime.now(tz=UTC):%Y-%m-01}"
NAME = "uploaded_documents"


def tick(instance: dg.DagsterInstance) -> dg.RunRequest | str:
    """Return the run requested, or why there is none."""
    sensor = build_uploaded_documents_sensor(load_settings())
    with dg.build_sensor_context(instance=instance, sensor_name=NAME) as context:
        data = sensor.evaluate_tick(context)
    if data.skip_message:
        return data.skip_message
    (request,) = data.run_requests
    return request


def test_what_was_uploaded_is_read_once(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolate(
        monkeypatch,
        tmp_path,
        DATABASE_URL=database_url,
        FILES_URL=(tmp_path / "files").as_uri(),
        FIRST_MONTH="2025-01",
    )
    files = LocalFiles(tmp_path / "files")
    with dg.DagsterInstance.ephemeral() as instance:
        assert tick(instance) == _("There is nothing to do.")
        upload = check_upload(b"Acta de la comunidad.", "acta.txt", tenant="vecina")
        with Database(database_url, tenant="vecina") as database:
            register(database, files, upload, b"Acta de la comunidad.")
        requested = tick(instance)
        assert isinstance(requested, dg.RunRequest)
        assert requested.tags["dagster/asset_partition_range_start"] == THIS_MONTH
        assert requested.tags["dagster/asset_partition_range_end"] == THIS_MONTH
        again = tick(instance)
        assert isinstance(again, dg.RunRequest)
        assert again.run_key == requested.run_key  # The daemon starts each key once.
        run = dg.DagsterRun(
            job_name="ingest",
            run_id=str(uuid4()),
            status=dg.DagsterRunStatus.STARTED,
            tags={"dagster/sensor_name": NAME},
        )
        instance.add_run(run)
        assert tick(instance) == _(
            "Another run is reading the uploaded documents; {count} wait."
        ).format(count=1)
        with open_application(load_settings()) as application:
            application.documents.extract(ALWAYS)
            application.documents.apply(ALWAYS)
        assert tick(instance) == _("There is nothing to do.")
