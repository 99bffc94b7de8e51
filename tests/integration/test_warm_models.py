"""A server that goes on loads the models of what serves next, before anybody asks."""

from collections.abc import Sequence
from typing import Any

import pytest

from rag_resources.application import Switch, open_application
from rag_resources.application.chosen import Chosen
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import ProviderUnavailableError
from rag_resources.core.retrievers import VectorKind
from rag_resources.database.pool import Database
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import load_settings
from rag_resources.store.models import register_model
from rag_resources.store.promotions import promote_back
from tests.embedders import HashEmbedder


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
            register_model(
                connection,
                HashEmbedder("use_multilingual").info,
                {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
            )
            promote_back(connection, "otra", other, evaluation_id=None, run_id=None, reason="x")
        application.warm_up()
    assert loaded == ["e5_small", "use_multilingual"]


def test_what_served_answers_until_the_models_of_the_next_one_are_loaded() -> None:
    """By its own name, not as the promoted one; the first one of all is answered with at once."""
    old = Chosen("antes (promovida)", RetrievalConfig(model="e5_small"), (), "antes", True)
    new = Chosen("ahora (promovida)", RetrievalConfig(model="use_multilingual"), (), "ahora", True)
    warm: set[str] = set()
    switch = Switch()

    def follow(serving: Chosen) -> Chosen:
        return switch.follow(serving, lambda config: config.model in warm)

    assert [follow(old), follow(old)] == [old, old]
    held = follow(new)
    assert (held.config, held.label, held.is_promoted) == (old.config, "antes", False)
    warm.add("use_multilingual")
    assert [follow(new), follow(new)] == [new, new]
    assert follow(old).config == new.config, "its model is not loaded any more, as far as is known"


class Failing(HashEmbedder):
    def embed_queries(self, texts: Sequence[str]) -> Any:
        raise ProviderUnavailableError("caído")


def test_a_model_that_cannot_be_loaded_does_not_hold_up_what_serves(database: Database) -> None:
    """It was tried; questions say what is missing."""
    config = RetrievalConfig(model="openai_hash")
    made = RetrievalPipeline(database, embedder=lambda _: Failing(), tenant="default")
    assert not made.is_warm(config)
    assert made.is_warm(RetrievalConfig(strategy="fulltext")), "words need no model"
    made.warm_up(config)
    assert made.is_warm(config)
