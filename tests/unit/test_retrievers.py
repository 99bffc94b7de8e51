"""Every retriever is completely defined."""

import pytest

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.retrievers import (
    DOCUMENTS_OF,
    KINDS,
    RETRIEVER_OF,
    RankedList,
    RetrieverName,
)
from rag_resources.retrieval.retrievers import RETRIEVERS
from rag_resources.store.ranked_lists import _STATEMENTS


def test_every_retriever_has_a_kind_and_a_module_and_every_list_a_statement() -> None:
    assert set(KINDS) == set(RETRIEVERS) == set(RetrieverName)
    assert set(RETRIEVER_OF) == set(DOCUMENTS_OF) == set(_STATEMENTS) == set(RankedList)


def test_no_list_belongs_to_two_retrievers() -> None:
    """Its weight would be another one's."""
    lists = [ranked for kind in KINDS.values() for ranked in kind.lists]
    assert len(lists) == len(set(lists))


@pytest.mark.parametrize("name", RetrieverName)
def test_nobody_stands_in_for_itself(name: RetrieverName) -> None:
    assert name not in KINDS[name].stand_ins


@pytest.mark.parametrize("name", RetrieverName)
def test_a_retriever_that_searches_by_vectors_names_the_model_they_are_of(
    name: RetrieverName,
) -> None:
    """Each model has its own breaker."""
    config, other = RetrievalConfig(model="a"), RetrievalConfig(model="b")
    retriever = RETRIEVERS[name]
    by_vectors = KINDS[name].searches_by == "vectors"
    assert retriever.models(config) == (("a",) if by_vectors else ())
    assert (retriever.dependency(config) != retriever.dependency(other)) == by_vectors
