"""A server that goes on loads the models of what serves next, before anybody asks."""

from threading import Event
from typing import cast

import pytest

from rag_resources.api import app
from rag_resources.application import Application, open_application
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import DatabaseUnavailableError
from rag_resources.database.pool import Database
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import load_settings
from rag_resources.store.models import register_model
from rag_resources.store.promotions import promote_back
from tests.embedders import HashEmbedder
from tests.waiting import wait_until


class Restless:
    """An application that fails every other time, and counts how often it is asked to load."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def retrieve(self, question: str) -> None:
        self.asked.append(question)

    def warm_up(self) -> None:
        self.asked.append("")
        if len(self.asked) % 2:
            raise DatabaseUnavailableError("caída")


def test_the_thread_looks_again_and_again_until_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It survives failures, says when the first models are ready, and ends."""
    monkeypatch.setattr(app, "LOOK_EVERY_S", 0.001)
    application, warm, stopping = Restless(), Event(), Event()
    thread = app._start_warming(cast("Application", application), warm, stopping)
    wait_until(lambda: len(application.asked) > 5)
    assert warm.is_set()
    assert application.asked[:2] == [app.WARM_UP, ""]
    stopping.set()
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_the_models_of_what_serves_are_loaded(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the default at first, and of another one as soon as that serves."""
    loaded: list[str] = []
    monkeypatch.setattr(RetrievalPipeline, "warm_up", lambda _, own: loaded.append(own.model))
    monkeypatch.setenv("DATABASE_URL", database_url)
    other = RetrievalConfig(model="use_multilingual")
    with open_application(load_settings()) as application:
        application.warm_up()
        with database.transaction() as connection:
            register_model(connection, HashEmbedder("use_multilingual").info, embeds_chunks=True)
            promote_back(connection, "otra", other, evaluation_id=None, run_id=None, reason="x")
        application.warm_up()
    assert loaded == ["e5_small", "use_multilingual"]
