"""The evaluation that stands for what serves, over nights, rollbacks and new questions."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from rag_resources.configurations import DEFAULT_CONFIGURATION
from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig
from rag_resources.core.errors import GateNotPassedError
from rag_resources.core.gate import GateConfig
from rag_resources.core.golden import golden_hash
from rag_resources.core.retrievers import VectorKind
from rag_resources.database.pool import Database
from rag_resources.serving.promotion import judge_serving, promote_best
from rag_resources.store.evaluations import fetch_evaluation
from rag_resources.store.migration import evaluation_to_compare_with
from rag_resources.store.models import register_model
from rag_resources.store.promotions import (
    evaluation_of_serving,
    promote,
    serving_since,
)
from tests.embedders import HashEmbedder
from tests.stored_evaluations import Asked, store_evaluation

CONFIG = RetrievalConfig(model="openai_hash")
OTHER = RetrievalConfig(model="openai_hash", contextual=False)
NAMED = {"una": NamedConfiguration(name="una", description="una", retrieval=CONFIG)}
GATE = GateConfig(hit_rate_at_10=0.5)
RELEVANT, ELSE = UUID(int=1), UUID(int=2)
QUESTIONS, LOST_A_NIGHT = 200, 2
FIRST = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def model(database: Database) -> None:
    with database.transaction() as connection:
        register_model(
            connection,
            HashEmbedder().info,
            {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
        )
        connection.execute("UPDATE embedding_models SET created_at = %s", (FIRST,))


def evaluated(
    database: Database,
    lost: int = 0,
    *,
    night: int = 1,
    name: str = "una",
    config: RetrievalConfig = CONFIG,
    golden: str = "",
) -> UUID:
    """An evaluation that found all but the first questions."""
    asked = [
        Asked(number, [RELEVANT], [ELSE if number < lost else RELEVANT])
        for number in range(QUESTIONS)
    ]
    return store_evaluation(
        database,
        name,
        asked,
        config=config,
        golden=golden or golden_hash([]),
        created_at=FIRST + timedelta(days=night),
    )


def serve(database: Database, evaluation_id: UUID, config: RetrievalConfig = CONFIG) -> None:
    with database.transaction() as connection:
        evaluation = fetch_evaluation(connection, evaluation_id)
        assert evaluation
        assert promote(connection, evaluation, config, run_id=None)


def reference(database: Database) -> UUID | None:
    with database.snapshot() as connection:
        found = evaluation_of_serving(connection)
    return found.evaluation_id if found else None


def nights(database: Database) -> Mapping[int, str | None]:
    """Evaluate and promote every night, a little worse each time; return what is said of it."""
    said: dict[int, str | None] = {}
    for night in range(1, 8):
        evaluated(database, LOST_A_NIGHT * (night - 1), night=night)
        with database.snapshot() as connection:
            said[night] = judge_serving(connection, GATE).fallen
        if said[night]:
            break
        assert promote_best(database, NAMED, gate=GATE).changed
    return said


def test_drift_within_the_margin_of_a_night_adds_up_and_is_caught(database: Database) -> None:
    """Two questions a night are no evidence; six in three nights are."""
    said = nights(database)
    assert list(said) == [1, 2, 3, 4]
    assert said[4]
    assert "que sirve: Hit_Rate@10 es peor" in said[4]
    with pytest.raises(GateNotPassedError, match="es peor que"):
        promote_best(database, NAMED, gate=GATE)


def test_the_reference_begins_anew_with_another_configuration(database: Database) -> None:
    first, again, other, back = (
        evaluated(database, night=1),
        evaluated(database, night=2),
        evaluated(database, night=3, name="otra", config=OTHER),
        evaluated(database, night=4),
    )
    serve(database, first)
    serve(database, again)
    assert reference(database) == first
    serve(database, other, OTHER)
    assert reference(database) == other
    serve(database, back)
    assert reference(database) == back


def test_before_the_first_promotion_the_default_configuration_is_compared_with(
    database: Database,
) -> None:
    """It serves then. A migration that finds no evaluation of it starts from the whole notes."""

    def compared() -> UUID | None:
        with database.snapshot() as connection:
            found = evaluation_to_compare_with(connection)
        return found.evaluation_id if found else None

    assert (reference(database), compared()) == (None, None)
    whole_notes = evaluated(database, name="baseline")
    assert (reference(database), compared()) == (None, whole_notes)
    default = evaluated(database, name=DEFAULT_CONFIGURATION)
    assert (reference(database), compared()) == (default, default)
    promoted = evaluated(database)
    serve(database, promoted)
    assert (reference(database), compared()) == (promoted, promoted)


def test_what_serves_serves_since_it_began_not_since_it_was_last_evaluated(
    database: Database,
) -> None:
    """A promotion on a newer evaluation is no break; another configuration between is one."""

    def since() -> datetime | None:
        with database.snapshot() as connection:
            return serving_since(connection)

    def promoted_at() -> list[datetime]:
        with database.snapshot() as connection:
            rows = connection.execute("SELECT promoted_at FROM promotions ORDER BY id")
            return [row.promoted_at for row in rows]

    assert since() is None
    for night in (1, 2):
        serve(database, evaluated(database, night=night))
    assert since() == promoted_at()[0]
    serve(database, evaluated(database, night=3, name="otra", config=OTHER), OTHER)
    assert since() == promoted_at()[2]
    for night in (4, 5):
        serve(database, evaluated(database, night=night))
    assert since() == promoted_at()[3]
