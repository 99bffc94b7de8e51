"""Property 62: nobody promotes a configuration by taking away the questions that it misses."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig, TopKConfig
from rag_resources.core.errors import GateNotPassedError
from rag_resources.core.gate import GateConfig
from rag_resources.core.golden import GoldenEntry
from rag_resources.database.pool import Database
from rag_resources.golden.dataset import Golden
from rag_resources.settings import load_settings
from rag_resources.store.golden import list_golden, write_golden
from tests.evaluated_corpus import CANDIDATE, LENIENT, Evaluated, Product

SHALLOW = NamedConfiguration(
    name="somera",
    description="x",
    retrieval=RetrievalConfig(
        model="openai_hash", strategy="fulltext", top_k=TopKConfig(retrieval=1, final=1)
    ),
)
NOTES = 6
FOUND, MISSED = 3, 5
"""Notes of the questions: a shallow search finds those before FOUND, and misses MISSED."""


def question(asked: int, note: int, corpus: Evaluated) -> GoldenEntry:
    """A question about a note, with another one as the relevant one."""
    query = f"¿Qué dice de asunto{asked}?"
    return GoldenEntry(query, (corpus.note(note),), "Algo.", "factual", 1)


def promoted(database: Database) -> Product:
    """A corpus with one question in four that a shallow search misses, and a promotion."""
    corpus = Evaluated.filled(database, NOTES)
    asked = [question(n, n, corpus) for n in range(FOUND)] + [question(4, MISSED, corpus)]
    with database.transaction() as connection:
        write_golden(connection, asked, replace=True)
    corpus.evaluate()
    Product(corpus, {CANDIDATE.name: CANDIDATE}, LENIENT).decide(CANDIDATE.name)
    return Product(corpus, {item.name: item for item in (CANDIDATE, SHALLOW)}, GateConfig())


def missed(product: Product) -> list[GoldenEntry]:
    """The question that is missed, however it is asked now."""
    with product.corpus.database.transaction() as connection:
        return [entry for entry in list_golden(connection) if "asunto4" in entry.query]


def golden(product: Product) -> Golden:
    return Golden(product.corpus.database, load_settings(tenant="ana"))


def delete(product: Product, reason: str) -> None:
    golden(product).delete(missed(product), origin="x", reason=reason)


def relabel(product: Product, reason: str) -> None:
    for entry in missed(product):
        note = str(product.corpus.note(4))
        golden(product).update(
            str(entry.golden_id),
            {"relevantNoteIds": [note]},
            origin="x",
            reason=reason,
        )


def reword(product: Product, reason: str) -> None:
    for entry in missed(product):
        golden(product).update(
            str(entry.golden_id),
            {"query": f"{entry.query} {entry.golden_id}"},
            origin="x",
            reason=reason,
        )


def replace_all(product: Product, reason: str) -> None:
    entries = [question(n, n, product.corpus) for n in range(FOUND)]
    with product.corpus.database.transaction() as connection:
        write_golden(connection, entries, replace=True, reason=reason)


def put_back(product: Product, reason: str) -> None:
    entry = question(4, 4, product.corpus)
    with product.corpus.database.transaction() as connection:
        write_golden(connection, [entry], replace=False, reason=reason)


EDITS: dict[str, Callable[[Product, str], None]] = {
    "delete": delete,
    "relabel": relabel,
    "reword": reword,
    "replace all": replace_all,
    "put back": put_back,
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(edits=st.lists(st.sampled_from(sorted(EDITS)), min_size=1, max_size=4))
def test_property_62_no_edit_of_questions_turns_a_refusal_into_a_promotion(
    database: Database, edits: list[str]
) -> None:
    product = promoted(database)
    for edit in edits:
        EDITS[edit](product, "")
        with pytest.raises(GateNotPassedError, match="Hit_Rate@10"):
            product.promote(SHALLOW.name)


@pytest.mark.parametrize("edit", ["delete", "relabel", "replace all"])
def test_property_62_a_reason_is_kept_and_releases_the_question(
    database: Database, edit: str
) -> None:
    product = promoted(database)
    EDITS[edit](product, "estaba mal etiquetada")
    assert product.promote(SHALLOW.name).evaluation.configuration == SHALLOW.name
    kept = "SELECT DISTINCT reason FROM golden_history WHERE reason <> ''"
    assert product.corpus.fetch(kept) == [("estaba mal etiquetada",)]
