"""In-process caches, the cached embedder, the keys of answers, and encoding of values."""

import hashlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.document_passages import DocumentPassage
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.places import DocumentPlace, Place
from rag_resources.core.query import Intent, TransformedQuery
from rag_resources.core.retrievers import RankedList
from rag_resources.core.temporal_context import Change, Reading
from rag_resources.core.types import (
    ModelInfo,
    RetrievalResponse,
    RetrievalResult,
    ScoredSpan,
    Vectors,
)
from rag_resources.languages.files import LANGUAGES
from rag_resources.providers.cache import (
    Limits,
    MemoryCache,
)
from rag_resources.providers.cached_embedder import (
    CachedEmbedder,
    vector_from_bytes,
    vector_to_bytes,
)
from rag_resources.retrieval.cache import (
    KeptAnswer,
    answer_from_bytes,
    answer_to_bytes,
    query_key,
)
from rag_resources.retrieval.request import Request
from rag_resources.store.index_state import IndexVersion
from tests.strategies import STORABLE, retrieval_configs, timestamps


class Clock:
    """Time that goes by when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


# --- In the process ---------------------------------------------------------------------------


def test_entries_live_as_long_as_they_may() -> None:
    clock = Clock()
    cache: MemoryCache[str] = MemoryCache(Limits(10, 60), clock)
    cache.put("a", "1")
    clock.now = 30
    cache.put("b", "2")
    assert cache.get_many(["a", "b", "c"]) == {"a": "1", "b": "2"}
    clock.now = 60
    assert cache.get("a") is None
    assert cache.get("b") == "2"
    cache.put("b", "3")
    clock.now = 119.9
    assert cache.get("b") == "3"


def test_the_least_recently_used_entry_makes_room() -> None:
    cache: MemoryCache[str] = MemoryCache(Limits(2, 60), Clock())
    cache.put_many({"a": "1", "b": "2"})
    cache.get("a")
    cache.put("c", "3")
    assert cache.get_many(["a", "b", "c"]) == {"a": "1", "c": "3"}


def test_threads_share_a_cache() -> None:
    """Concurrent inserts, removals and expiries lose no count and no look-up."""
    clock = Clock()
    cache: MemoryCache[int] = MemoryCache(Limits(16, 5), clock)
    together = threading.Barrier(4)

    def use(seed: int) -> None:
        together.wait(10)
        for number in range(2_000):
            key = str((number * seed) % 40)
            found = cache.get(key)
            assert found in (None, int(key))
            cache.put(key, int(key))
            clock.now += 0.01

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, (1, 3, 7, 11)))
    assert len(cache._entries) <= 16


# --- Vectors ----------------------------------------------------------------------------------


class CountingEmbedder:
    """Remembers what it was asked; its vectors depend on the text, its kind and the weights."""

    def __init__(self, *, name: str = "model", digest: str = "1") -> None:
        self._info = ModelInfo(name, 8, "test", digest, 0.0, 512)
        self.asked_for_info = 0
        self.calls: list[tuple[str, ...]] = []

    @property
    def info(self) -> ModelInfo:
        """The model behind it."""
        self.asked_for_info += 1
        return self._info

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages."""
        return self._embed("passage", texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed questions."""
        return self._embed("query", texts)

    def _embed(self, kind: str, texts: Sequence[str]) -> Vectors:
        self.calls.append(tuple(texts))
        rows = [self._vector(kind, text) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), 8)

    def _vector(self, kind: str, text: str) -> list[float]:
        seed = f"{self._info.name} {self._info.digest} {kind} {text}"
        digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).digest()
        raw = np.frombuffer(digest, dtype="<u4").astype(np.float64) + 1
        return list(raw / np.linalg.norm(raw))


def vector_cache() -> MemoryCache[Vectors]:
    return MemoryCache(Limits(1_000, 60), Clock())


TEXTS = st.lists(st.one_of(st.sampled_from("abc"), st.text(max_size=3)), max_size=6)


@given(st.lists(st.tuples(st.booleans(), TEXTS), max_size=6))
@example([(True, ["\ud800", "a", "a"]), (False, ["a"]), (True, [])])
def test_vectors_are_those_of_the_model_whatever_is_cached(
    batches: list[tuple[bool, list[str]]],
) -> None:
    """In order, with repeats, questions and passages apart; no text is embedded twice."""
    model, plain = CountingEmbedder(), CountingEmbedder()
    cached = CachedEmbedder(model, vector_cache())
    for is_query, texts in batches:
        one, other = (e.embed_queries if is_query else e.embed_passages for e in (cached, plain))
        vectors = one(texts)
        np.testing.assert_array_equal(vectors, other(texts))
        assert vectors.dtype == np.float32
        vectors[:] = 0.0
    asked = [text for call in model.calls for text in call]
    assert len(asked) == len({(q, text) for q, texts in batches for text in texts})
    assert model.asked_for_info <= 1


def test_only_what_is_missing_is_embedded_and_in_one_call() -> None:
    model = CountingEmbedder()
    cached = CachedEmbedder(model, vector_cache())
    cached.embed_queries(["a", "b"])
    cached.embed_queries(["c", "a", "d", "c"])
    cached.embed_queries(["d", "b"])
    assert model.calls == [("a", "b"), ("c", "d")]


def test_models_share_a_cache_and_no_vector() -> None:
    """Not even two of one name with other weights."""
    cache = vector_cache()
    models = [
        CountingEmbedder(),
        CountingEmbedder(digest="2"),
        CountingEmbedder(name="model_1", digest=""),
    ]
    for model in models:
        vectors = CachedEmbedder(model, cache).embed_queries(["a"])
        np.testing.assert_array_equal(vectors, model.embed_queries(["a"]))
        assert model.calls == [("a",), ("a",)]


def test_what_is_at_hand_is_what_would_be_embedded_and_takes_no_model() -> None:
    """Only if all of it is cached."""
    model, cache = CountingEmbedder(), vector_cache()
    cached = CachedEmbedder(model, cache)
    assert cached.at_hand(["a"]) is None
    expected = cached.embed_queries(["a", "b"])
    np.testing.assert_array_equal(cached.at_hand(["b", "a", "b"]), expected[[1, 0, 1]])
    assert cached.at_hand(["a", "c"]) is None
    assert cached.at_hand([]) is None
    assert model.calls == [("a", "b")]


def test_a_model_that_fails_leaves_nothing_behind() -> None:
    model = CountingEmbedder()
    cache = vector_cache()
    with pytest.raises(ValueError, match="zip"):
        CachedEmbedder(_OneTooFew(model), cache).embed_queries(["a", "b"])
    assert not cache._entries


class _OneTooFew(CachedEmbedder):
    """A model that breaks its promise."""

    def __init__(self, model: CountingEmbedder) -> None:
        self._model = model

    @property
    def info(self) -> ModelInfo:
        """The model behind it."""
        return self._model.info

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed all questions but the last."""
        return self._model.embed_queries(texts)[:-1]


# --- Keys of answers --------------------------------------------------------------------------

MODELS = {"notes": "use", "language": ""}
NEVER = Deadline.after(1e9, Clock())


def request_of(**changes: Any) -> Request:
    basis = Request(
        query="¿Qué?",
        config=RetrievalConfig(),
        tenant="ana",
        filters=RetrievalFilters(),
        top_k=5,
        distinct_notes=0,
        deadline=NEVER,
        cached=True,
    )
    return replace(basis, **changes)


METADATA = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.one_of(
        st.none(), st.booleans(), st.integers(0, 2), st.floats(0, 1), st.text(STORABLE, max_size=2)
    ),
)
FILTERS = st.builds(
    RetrievalFilters,
    source=st.none() | st.sampled_from(["a", "b"]),
    tags=st.lists(st.sampled_from(["x", "y"]), max_size=2).map(tuple),
    note_ids=st.lists(st.uuids(), max_size=2).map(tuple),
    created_from=st.none() | timestamps(),
    metadata=METADATA,
)
COMPONENTS: dict[str, st.SearchStrategy[Any]] = {
    "query": st.text(max_size=5),
    "config": retrieval_configs(),
    "tenant": st.text(min_size=1, max_size=4),
    "filters": FILTERS,
    "top_k": st.integers(1, 50),
    "distinct_notes": st.integers(0, 10),
    "language": st.sampled_from(LANGUAGES),
    "models": st.dictionaries(st.text(max_size=4), st.text(max_size=6), max_size=3),
}


def key_of(parts: dict[str, Any]) -> str:
    request = {k: v for k, v in parts.items() if k != "models"}
    return query_key(request_of(**request), models=parts["models"])


@given(st.fixed_dictionaries(COMPONENTS), st.data())
def test_requests_that_differ_in_anything_have_different_keys(
    parts: dict[str, Any], data: st.DataObject
) -> None:
    """And those that do not have the same."""
    changed = data.draw(st.sampled_from(sorted(COMPONENTS)))
    other = parts | {changed: data.draw(COMPONENTS[changed])}
    assert key_of(parts) == key_of(dict(reversed(parts.items())))
    if other != parts:
        assert key_of(other) != key_of(parts)


def test_filters_that_python_holds_for_equal_have_different_keys() -> None:
    values = [1, True, "1", "True", None, "None", 0, False, ""]
    keys = {
        query_key(request_of(filters=RetrievalFilters(metadata={"a": value})), models=MODELS)
        for value in values
    }
    assert len(keys) == len(values)


# --- How values travel ------------------------------------------------------------------------

STORED = st.text(STORABLE, max_size=12)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
READING = Reading(date(2024, 2, 1), Decimal("1263.70"), "B3")
CHANGE = Change("Gasto", READING, replace(READING, day=date(2024, 1, 1), cell="B2"))
RESULTS = st.builds(
    RetrievalResult,
    chunk_id=st.uuids(),
    note_id=st.uuids(),
    content=STORED,
    expanded_content=STORED,
    score=st.floats(0, 1),
    chunk_index=st.integers(0, 10**6),
    matched_bounds=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    lists=st.sampled_from([(RankedList.SEMANTIC,), (RankedList.SEMANTIC, RankedList.FULLTEXT)]),
    original_score=FLOATS,
    title=STORED,
    created_at=st.none() | timestamps(),
    rerank_score=st.none() | FLOATS,
    start_char=st.integers(0, 10**6),
    place=st.none()
    | st.just(DocumentPlace(UUID(int=9), ("Plan",), (Place(3, sheet="Hoja", cells=("B3",)),))),
    document=st.builds(
        DocumentPassage,
        document=STORED,
        next_chunk_id=st.none() | st.uuids(),
        quality=st.none() | st.floats(0, 1),
        changes=st.sampled_from([(), (CHANGE,), (replace(CHANGE, previous=None),)]),
    ),
    windows=st.lists(
        st.builds(ScoredSpan, st.integers(0, 9), st.integers(0, 9), st.floats(0, 1)), max_size=2
    ).map(tuple),
)
RESPONSES = st.builds(
    RetrievalResponse,
    results=st.lists(RESULTS, max_size=3).map(tuple),
    query=STORED,
    strategy=st.sampled_from(["semantic", "hybrid+rerank"]),
    model=STORED,
    latency_ms=FLOATS,
    stages=st.dictionaries(STORED, FLOATS, max_size=3),
    transformed=st.none()
    | st.builds(
        TransformedQuery,
        original=STORED,
        intent=st.sampled_from(Intent),
        sub_queries=st.lists(STORED, max_size=2).map(tuple),
        hypothetical_answer=st.none() | STORED,
        transformed_at=timestamps(),
    ),
    degraded=st.lists(STORED, max_size=2).map(tuple),
    messages=st.lists(STORED, max_size=2).map(tuple),
    error=st.none() | STORED,
    cached=st.booleans(),
)


VERSIONS = st.builds(
    IndexVersion,
    number=st.integers(0, 2**63 - 1),
    lineage=STORED,
    next_expiry=st.none() | timestamps(),
)
ANSWERS_KEPT = st.builds(KeptAnswer, RESPONSES, VERSIONS)


@given(ANSWERS_KEPT)
def test_an_answer_comes_back_as_it_was(answer: KeptAnswer) -> None:
    again = answer_from_bytes(answer_to_bytes(answer))
    assert again == answer
    assert again.response.to_json() == answer.response.to_json()
    assert list(again.response.stages) == list(answer.response.stages)


@given(ANSWERS_KEPT, st.data())
def test_bytes_that_are_no_answer_are_refused(answer: KeptAnswer, data: st.DataObject) -> None:
    """For truncated or arbitrary bytes, only the documented error is raised."""
    whole = answer_to_bytes(answer)
    for part in (
        whole[: data.draw(st.integers(0, len(whole) - 1))],
        data.draw(st.binary(max_size=20)),
    ):
        with pytest.raises(ValueError, match="validation error"):
            answer_from_bytes(part)


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=5))
def test_vectors_come_back_as_they_were(values: list[float]) -> None:
    vector = np.array(values, dtype=np.float32)
    data = vector_to_bytes(vector)
    again = vector_from_bytes(data)
    np.testing.assert_array_equal(again, vector)
    assert again.dtype == np.float32
    with pytest.raises(ValueError, match="buffer size"):
        vector_from_bytes(data + b"1")


# --- Sentences --------------------------------------------------------------------------------
