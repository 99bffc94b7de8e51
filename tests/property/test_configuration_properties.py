"""Properties 29 (the hash) and 34: equal configurations hash equal, bad ones name every problem."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rag_resources.core.configuration import (
    ChunkingConfig,
    RetrievalConfig,
    canonical_hash,
    parse_configuration,
    parse_retrieval,
    with_overrides,
)
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.retrievers import RetrieverName
from rag_resources.core.validation import describe_problems
from tests.strategies import chunking_configs, retrieval_configs

CORRUPTIONS: dict[str, list[Any]] = {
    "unit": ["frases", "", 3],
    "strategy": ["magica", "", 3],
    "model": ["E5", "con espacio", "", "a" * 41, 7],
    "similarity_threshold": [-0.1, 1.1, float("nan"), "alto"],
    "contextual": ["quizá", 7, [1]],
    "extra": [1],
    "fusion.method": ["suma", 1],
    "fusion.rank_constant": [0, -60, 10_001, 1.5, "sesenta"],
    "fusion.bm25_weight": [0.5],
    "retrievers.semantic.weight": [-0.5, 1.01, float("nan"), "medio", None],
    "retrievers.fulltext.weight": [-1e-9, 2, float("-inf"), [0.5]],
    "retrievers.grafo": [{"weight": 0.5}],
    "reranking.enabled": [None, "quizá", 2],
    "reranking.method": ["cross_encoder", None, 1],
    "reranking.model": ["E5", "", None, "\ud800"],
    "reranking.weight": [-1, 1.25, float("nan"), "todo"],
    "reranking.batch_size": [0, 51, 2.5, "cinco"],
    "reranking.timeout_ms": [0, 5_001, float("inf"), "1 s"],
    "reranking.top_n": [10],
    "transformation.enabled": [None, "quizá", 2],
    "transformation.decomposition": ["dos", []],
    "transformation.hyde": [0.5, {}],
    "transformation.sub_queries": [True],
    "diversity_weight": [-0.01, 1.5, float("nan"), "mucha"],
    "context.words": [3],
    "context.sentences_before": [-1, 21, 0.5],
    "context.sentences_after": [-1, 21, "dos"],
    "top_k.retrieval": [0, -1, 501, "veinte"],
    "top_k.reranking": [0, 101, 1e300, "9" * 5000],
    "top_k.final": [0, -5, 51, 2.5],
}
"""Values that are wrong at a path, whatever the rest of the configuration is."""

CROSS_FIELD: dict[str, dict[str, Any]] = {
    "retrievers": {"retrievers.semantic.weight": 0, "retrievers.fulltext.weight": 0.0},
    "top_k": {"top_k.retrieval": 4, "top_k.final": 5},
}
"""Values that are wrong together; the problem is named at the part."""


def put(raw: dict[str, Any], path: str, value: Any) -> None:
    *parents, leaf = path.split(".")
    for parent in parents:
        if raw.get(parent) is None:  # A part that is not set.
            raw[parent] = {}
        raw = raw[parent]
    raw[leaf] = value


def shuffled(value: Any, random: Any) -> Any:
    """Return the value with the keys of every mapping in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(inner, random)) for key, inner in value.items()]
        random.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [shuffled(inner, random) for inner in value]
    return value


def json_values() -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
        ),
        max_leaves=8,
    )


def one_changed_field(config: RetrievalConfig) -> st.SearchStrategy[tuple[str, Any]]:
    """A path and a valid value for it other than the configuration's."""
    semantic = config.retrievers[RetrieverName.SEMANTIC]
    return st.sampled_from(
        [
            ("unit", "chunks" if config.unit == "notes" else "notes"),
            ("contextual", not config.contextual),
            ("model", config.model[:20] + "_2"),
            ("fusion.rank_constant", config.fusion.rank_constant % 10_000 + 1),
            ("context.sentences_after", config.context.sentences_after + 1),
            ("top_k.retrieval", 499 if config.top_k.retrieval == 500 else 500),
            ("top_k.reranking", config.top_k.reranking % 100 + 1),
            ("retrievers.semantic.weight", 0.75 if semantic.weight < 0.5 else 0.25),
            ("retrievers.semantic.candidates", not semantic.candidates),
            ("reranking.enabled", not config.reranking.enabled),
            ("reranking.method", "llm" if config.reranking.method == "sentences" else "sentences"),
            ("reranking.model", config.reranking.model[:20] + "_2"),
            ("reranking.weight", 0.75 if config.reranking.weight < 0.5 else 0.25),
            ("reranking.timeout_ms", config.reranking.timeout_ms % 5_000 + 1),
            ("transformation.hyde", not config.transformation.hyde),
            ("diversity_weight", 0.75 if config.diversity_weight < 0.5 else 0.25),
        ]
    )


@given(retrieval_configs(), retrieval_configs(), json_values(), st.data())
def test_property_29_configurations_hash_equal_exactly_if_they_are_equal(
    config: RetrievalConfig, other: RetrievalConfig, value: Any, data: st.DataObject
) -> None:
    random = data.draw(st.randoms())
    raw = config.model_dump(mode="json")
    canonical = json.dumps(
        config.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    assert config.config_hash == hashlib.sha256(canonical.encode()).hexdigest()[:16]
    again = parse_retrieval(shuffled(raw, random), origin="prueba")
    assert again == config
    assert again.config_hash == config.config_hash
    assert (other == config) == (other.config_hash == config.config_hash)
    assert canonical_hash(shuffled(value, random)) == canonical_hash(value)
    assert canonical_hash([value]) != canonical_hash(value)
    put(raw, *data.draw(one_changed_field(config)))
    assert parse_retrieval(raw, origin="prueba").config_hash != config.config_hash


@given(
    retrieval_configs(),
    st.lists(st.sampled_from(sorted(CORRUPTIONS)), unique=True),
    st.sets(st.sampled_from(sorted(CROSS_FIELD))),
    chunking_configs(),
    st.data(),
)
def test_property_34_an_invalid_configuration_is_rejected_with_every_problem_named(
    config: RetrievalConfig,
    wrong: list[str],
    together: set[str],
    chunking: ChunkingConfig,
    data: st.DataObject,
) -> None:
    check_chunking(chunking, data)
    raw = config.model_dump(mode="json")
    together = {part for part in together if not any(path.startswith(part) for path in wrong)}
    for part in together:
        for path, value in CROSS_FIELD[part].items():
            put(raw, path, value)
    for path in wrong:
        put(raw, path, data.draw(st.sampled_from(CORRUPTIONS[path]), label=path))
    if not wrong and not together:
        assert parse_retrieval(raw, origin="prueba") == config
        return
    with pytest.raises(InvalidConfigurationError) as caught:
        parse_retrieval(raw, origin="prueba.yaml")
    paths = [problem.split(": ")[0] for problem in caught.value.problems]
    assert sorted(paths) == sorted({*wrong, *together})
    assert all(problem in caught.value.message for problem in caught.value.problems)
    assert "prueba.yaml" in caught.value.message

    named = {"name": "Mala", "description": "", "retrieval": raw}
    with pytest.raises(InvalidConfigurationError) as caught:
        parse_configuration(named, origin="prueba.yaml")
    paths = [problem.split(": ")[0] for problem in caught.value.problems]
    nested = [f"retrieval.{path}" for path in {*wrong, *together}]
    assert sorted(paths) == sorted(["name", "description", *nested])


@given(retrieval_configs(), retrieval_configs(), st.data())
def test_property_34_overrides_replace_what_they_name_at_any_depth_and_are_validated(
    config: RetrievalConfig, other: RetrievalConfig, data: st.DataObject
) -> None:
    """A weight of a model is a field too; None replaces nothing."""
    raw, replacing = config.model_dump(mode="json"), dict(leaves(other.model_dump(mode="json")))
    chosen = data.draw(st.lists(st.sampled_from(sorted(replacing)), unique=True), label="paths")
    overrides: dict[str, Any] = {}
    for path in chosen:
        *parents, leaf = path
        part = overrides
        for parent in parents:
            part = part.setdefault(parent, {})
        part[leaf] = replacing[path]
        if replacing[path] is not None:
            put(raw, ".".join(path), replacing[path])
    expected = outcome(lambda: parse_retrieval(raw, origin="prueba"))
    assert outcome(lambda: with_overrides(config, overrides)) == expected


def outcome(make: Callable[[], RetrievalConfig]) -> RetrievalConfig | list[str]:
    """The configuration, or its problems."""
    try:
        return make()
    except InvalidConfigurationError as error:
        return error.problems


def leaves(raw: dict[str, Any], *parents: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value that is no mapping, by its path."""
    for key, value in raw.items():
        if isinstance(value, dict):
            yield from leaves(value, *parents, key)
        else:
            yield (*parents, key), value


def check_chunking(config: ChunkingConfig, data: st.DataObject) -> None:
    """Check that overlap and minimum no smaller than the chunk are refused, both named."""
    wrong = data.draw(st.sets(st.sampled_from(["overlap", "min"])), label="chunking")
    excess = data.draw(st.integers(0, 50), label="excess")
    raw = config.model_dump() | {f"{name}_tokens": config.max_tokens + excess for name in wrong}
    if not wrong:
        assert ChunkingConfig(**raw) == config
        return
    with pytest.raises(ValidationError) as caught:
        ChunkingConfig(**raw)
    text = "\n".join(describe_problems(caught.value))
    assert {name for name in ("overlap", "min") if f"{name}_tokens debe ser menor" in text} == wrong
