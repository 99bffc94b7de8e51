"""Configurations: defaults, every problem by its path in Spanish, overrides, hashes."""

from typing import Any

import pytest

from rag_resources.core.configuration import (
    ChunkingConfig,
    NamedConfiguration,
    RetrievalConfig,
    Role,
    Strategy,
    canonical_hash,
    parse_configuration,
    parse_retrieval,
)
from rag_resources.core.configuration_notices import notices
from rag_resources.core.errors import InvalidConfigurationError, InvalidInputError
from rag_resources.core.retrievers import RetrieverName
from rag_resources.languages.messages import _

SEMANTIC, FULLTEXT = RetrieverName.SEMANTIC, RetrieverName.FULLTEXT


def problems_of(raw: Any) -> list[str]:
    with pytest.raises(InvalidConfigurationError) as caught:
        parse_retrieval(raw, origin="mala.yaml")
    assert caught.value.message.startswith("mala.yaml no es válido; no se ha cambiado nada:\n  - ")
    assert caught.value.context == {"origin": "mala.yaml"}
    assert isinstance(caught.value, InvalidInputError)
    return caught.value.problems


def test_nothing_given_is_the_documented_default() -> None:
    config = parse_retrieval({}, origin="vacía")
    assert config == RetrievalConfig()
    assert (config.strategy, config.unit, config.model) == ("hybrid", "chunks", "e5_small")
    assert (config.fusion.method, config.fusion.rank_constant) == ("scaled", 60)
    assert (config.top_k.retrieval, config.top_k.reranking, config.top_k.final) == (20, 10, 5)
    assert (config.reranking.enabled, config.reranking.method) == (True, "sentences")
    assert (config.reranking.batch_size, config.reranking.timeout_ms) == (5, 5_000)
    transformation = config.transformation
    assert (transformation.enabled, transformation.decomposition, transformation.hyde) == (
        True,
    ) * 3
    assert config.diversity_weight == 0
    chunking = ChunkingConfig()
    assert (chunking.max_tokens, chunking.overlap_tokens, chunking.min_tokens) == (512, 50, 100)


def test_all_problems_are_named_at_once() -> None:
    found = problems_of(
        {
            "strategy": "magia",
            "retrievers": {"semantic": {"weight": 0}},
            "context": {"sentences_before": -1, "sentences_after": 99},
            "top_k": {"retrieval": 3, "final": 4},
            "extra": 1,
        }
    )
    assert [problem.split(": ")[0] for problem in found] == [
        "strategy",
        "retrievers",
        "context.sentences_before",
        "context.sentences_after",
        "top_k",
        "extra",
    ]


def test_a_named_configuration_is_read() -> None:
    raw = {"name": "solo_texto", "description": "Texto.", "retrieval": {"strategy": "fulltext"}}
    assert parse_configuration(raw, origin="x") == NamedConfiguration(
        name="solo_texto",
        description="Texto.",
        role=Role.CANDIDATE,
        retrieval=RetrievalConfig(strategy=Strategy.FULLTEXT),
    )


def test_the_hash_is_known_and_stable_under_key_order() -> None:
    """The digest is that of `printf '{"a":[1,{"b":null,"ñ":"é"}],"z":0.5}' | sha256sum`."""
    value = {"z": 0.5, "a": [1, {"ñ": "é", "b": None}]}
    assert canonical_hash(value) == "f69b2963f64f4994"
    assert canonical_hash({"a": [1, {"b": None, "ñ": "é"}], "z": 0.5}) == canonical_hash(value)
    assert canonical_hash([1, 2]) != canonical_hash([2, 1])


def test_a_hash_of_something_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_hash(float("nan"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"strategy": "hybrid"}, {}),
        (
            {"retrievers": {"semantic": {"weight": 1}, "fulltext": {"weight": 0}}},
            {"retrievers": {"fulltext": {"weight": -0.0}, "semantic": {"weight": 1.0}}},
        ),
        ({"similarity_threshold": 0}, {"similarity_threshold": -0.0}),
        ({"diversity_weight": -0.0, "reranking": {"weight": 1}}, {"reranking": {"weight": 1.0}}),
    ],
)
def test_equal_configurations_hash_equal_however_written(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = parse_retrieval(one, origin="x"), parse_retrieval(other, origin="x")
    assert first == second
    assert first.config_hash == second.config_hash
    assert len(first.config_hash) == 16


@pytest.mark.parametrize(
    "raw",
    [
        {"retrievers": {"semantic": {"candidates": False}, "fulltext": {}}},
        {"transformation": {"coordinated": False}},
        {"graph": {"enabled": True}},
    ],
)
def test_a_stored_configuration_is_read_back_and_each_choice_is_hashed(raw: dict[str, Any]) -> None:
    config = parse_retrieval(raw, origin="x")
    assert config.config_hash != RetrievalConfig().config_hash
    assert parse_retrieval(config.model_dump(mode="json"), origin="x") == config


def test_the_weight_of_the_graph_is_added_to_those_of_the_retrievers() -> None:
    graph = {"enabled": True, "weight": 0.25}
    halves = {"semantic": {"weight": 0.5}, "fulltext": {"weight": 0.5}}
    assert notices(parse_retrieval({"retrievers": halves, "graph": graph}, origin="x")) == []
    more = {**halves, "windows": {"weight": 0.25}}
    (told,) = notices(parse_retrieval({"retrievers": more, "graph": graph}, origin="x"))
    assert told == _(
        "The weights of the retrievers sum to {total}, not 1. Only their proportion counts: "
        "{shares}."
    ).format(total="1.25", shares="semantic 0.333, windows 0.167, fulltext 0.333, graph 0.167")


def test_a_configuration_names_its_retrievers() -> None:
    """A configuration with one retriever differs from one with both."""
    words = parse_retrieval({"retrievers": {"fulltext": {"weight": 0.5}}}, origin="x")
    assert words.searched == (FULLTEXT,)
    assert (words.uses_vectors, words.models) == (False, ())
    both = parse_retrieval({"retrievers": {"fulltext": {}, "semantic": {}}}, origin="x")
    assert both.searched == (SEMANTIC, FULLTEXT)
    assert both == RetrievalConfig()
    assert len({words.config_hash, both.config_hash}) == 2
