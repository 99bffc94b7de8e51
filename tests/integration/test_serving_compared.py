"""Another candidate is compared with what serves on the same index, or not at all."""

import pytest

from rag_resources.core.errors import GateNotPassedError
from rag_resources.database.pool import Database
from tests.evaluated_corpus import (
    BOTH,
    CANDIDATE,
    OTHER_CANDIDATE,
    Evaluated,
    Product,
)

ASKED = 20
LOST = "UPDATE notes SET expires_at = now() WHERE external_id::int < 12 RETURNING 1"


@pytest.fixture
def product(database: Database) -> Product:
    """One configuration serves; then the notes of most questions expire."""
    corpus = Evaluated.filled(database, 2 * ASKED)
    corpus.ask_for(range(ASKED))
    corpus.evaluate(CANDIDATE)
    made = Product(corpus, dict(BOTH))
    assert made.promote(CANDIDATE.name).changed
    corpus.fetch(LOST)
    return made


def test_what_serves_is_evaluated_again_before_another_is_compared_with_it(
    product: Product,
) -> None:
    """Both lost the same questions, so the other one is no worse; by the old figures it is."""
    product.corpus.evaluate(OTHER_CANDIDATE)
    outcome = product.promote(OTHER_CANDIDATE.name)
    assert outcome.evaluated_again == (CANDIDATE.name,)
    assert (outcome.evaluation.configuration, outcome.changed) == (OTHER_CANDIDATE.name, True)


def test_what_serves_is_still_judged_by_its_first_promotion(product: Product) -> None:
    """Another candidate being compared with its newest figures does not hide its own fall."""
    product.corpus.evaluate(CANDIDATE)
    with pytest.raises(GateNotPassedError, match="es peor que «candidata», que sirve: "):
        product.promote(CANDIDATE.name)


def test_a_serving_configuration_whose_file_changed_is_measured_as_it_serves(
    product: Product,
) -> None:
    """Its name has two contents then; the file's is evaluated last, and is what is promoted."""
    edited = CANDIDATE.model_copy(update={"retrieval": OTHER_CANDIDATE.retrieval})
    product.configurations = {CANDIDATE.name: edited}
    outcome = product.promote(CANDIDATE.name)
    assert outcome.evaluated_again == (CANDIDATE.name, CANDIDATE.name)
    assert outcome.evaluation.config_hash == edited.retrieval.config_hash


def test_what_serves_is_evaluated_if_it_never_was(product: Product) -> None:
    """A rollback needs no evaluation; what follows it is compared with it all the same."""
    product.corpus.evaluate(OTHER_CANDIDATE)
    product.corpus.forge("UPDATE promotions SET evaluation_id = NULL")
    product.corpus.forge("DELETE FROM evaluation_results WHERE configuration = 'candidata'")
    assert product.promote(OTHER_CANDIDATE.name).evaluated_again == (CANDIDATE.name,)
