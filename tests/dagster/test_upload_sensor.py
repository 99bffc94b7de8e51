"""Uploaded documents, as the sensor of what waits finds them."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from rag_assets.sensors import build_waiting_notes_sensor
from rag_resources.application import open_application
from rag_resources.database.pool import Database
from rag_resources.documents.uploads import check_upload, register
from rag_resources.files import LocalFiles
from rag_resources.settings import load_settings
from rag_resources.store.document_list import ALWAYS
from tests.command_line import isolate

THIS_MONTH = f"{datetime.now(tz=UTC):%Y-%m-01}"


def test_what_was_uploaded_is_read_once(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while other runs are going on."""
    isolate(
        monkeypatch,
        tmp_path,
        DATABASE_URL=database_url,
        FILES_URL=(tmp_path / "files").as_uri(),
        FIRST_MONTH="2025-01",
    )
    cursor: str | None = None

    def requested() -> list[tuple[str, str]]:
        nonlocal cursor
        sensor = build_waiting_notes_sensor(load_settings())
        with dg.build_sensor_context(instance=instance, cursor=cursor) as context:
            data = sensor.evaluate_tick(context)
        cursor = data.cursor
        ends = ("start", "end")
        return [
            tuple(request.tags[f"dagster/asset_partition_range_{end}"] for end in ends)
            for request in data.run_requests
        ]

    files = LocalFiles(tmp_path / "files")
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_run(dg.DagsterRun(job_name="otro", status=dg.DagsterRunStatus.STARTED))
        assert requested() == []
        upload = check_upload(b"Acta de la comunidad.", "acta.txt", tenant="vecina")
        with Database(database_url, tenant="vecina") as database:
            register(database, files, upload, b"Acta de la comunidad.")
        assert requested() == [(THIS_MONTH, THIS_MONTH)]
        assert requested() == []
        with open_application(load_settings()) as application:
            application.documents.extract(ALWAYS)
            assert not application.documents.waiting_uploads()
        assert requested() == []
