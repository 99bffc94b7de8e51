"""Evaluations that were asked for over HTTP: the sensor's ticks and the job."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from rag_assets.evaluation.checks import gates_of
from rag_assets.evaluation.requested import (
    build_requested_evaluations_sensor,
    requested_evaluations_job,
)
from rag_resources.application import Application, open_application
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.settings import load_settings
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.evaluation_requests import RequestState, begin_request
from rag_resources.store.notes import note_id
from tests.command_line import isolate
from tests.corpus import ALWAYS

DAY = datetime(2025, 1, 12, tzinfo=UTC)


def prepare(tenant: str, url: str) -> None:
    """A note and a golden question of a tenant."""
    with Database(url, tenant=tenant) as database:
        record = NoteRecord("furgo", "Furgo", f"El taller de {tenant} pide 415 euros.", DAY)
        ingest(database, [record], tenant=tenant, source="notes")
        chunk_window(database, ALWAYS, ChunkingConfig())
        with database.transaction() as connection:
            refresh_statistics(connection)


def opened(tenant: str) -> "dg.AbstractContextManager[Application]":  # type: ignore[name-defined]
    return open_application(load_settings().model_copy(update={"tenant": tenant}))


def test_requests_of_all_tenants_are_measured_once_also_after_a_kill(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url, FIRST_MONTH="2025-01")
    asked = {}
    for tenant in ("default", "vecina"):
        prepare(tenant, database_url)
        with opened(tenant) as app:
            row = {
                "query": "¿Cuánto pide el taller?",
                "relevantNoteIds": [str(note_id(tenant, "notes", "furgo"))],
                "expectedAnswer": "415",
                "category": "factual",
                "difficulty": 1,
            }
            app.golden.add(row, origin="test")
            asked[tenant] = app.evaluation_requests.ask("fulltext")
            again = app.evaluation_requests.ask("fulltext")
            assert again.request_id == asked[tenant].request_id
    with opened("default") as app:
        unknown = app.evaluation_requests.ask("no_existe")
        [killed, *__] = app.evaluation_requests.waiting()
        with app.database.transaction() as connection:
            assert begin_request(connection, killed) == 1  # by a run that is gone
    with dg.DagsterInstance.ephemeral() as instance:
        sensor = build_requested_evaluations_sensor(load_settings())
        with dg.build_sensor_context(instance=instance) as context:
            [request] = sensor.evaluate_tick(context).run_requests or []
        assert request.run_key
        rag = RagResource(settings=load_settings())
        done = requested_evaluations_job.execute_in_process(
            instance=instance, resources={"rag": rag}
        )
        assert done.success
        assert [e.asset_key.path for e in done.get_asset_materialization_events()] == [
            ["evaluation_results", "fulltext"]
        ]
        checked = {e.check_name: e.passed for e in done.get_asset_check_evaluations()}
        with opened("default") as app:
            own = gates_of(app.configuration("fulltext"), app.settings.gate)
        assert checked.keys() == {gate.name for gate in own}
        assert checked["hit_rate_gate"]
        with dg.build_sensor_context(instance=instance) as context:
            told = sensor.evaluate_tick(context).skip_message
        assert told == _("There is nothing to do.")
    for tenant, request in asked.items():
        with opened(tenant) as app:
            found = app.evaluation_requests.find(request.request_id)
            assert found is not None
            assert found.state is RequestState.DONE
            measured = app.evaluations.find(found.evaluation_id)
            assert measured is not None
            assert measured.hit_rate_at_10 == 1
    with opened("default") as app:
        failed = app.evaluation_requests.find(unknown.request_id)
        assert failed is not None
        assert failed.state is RequestState.FAILED
        assert "no_existe" in (failed.error or "")
        assert app.evaluation_requests.find(asked["vecina"].request_id) is None
