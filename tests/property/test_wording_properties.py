"""Property 53: wording is not data. Also: what is stored of a text gives the text back."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_resources.answers.answerers import QUOTATION_VERSION
from rag_resources.core.chunking_version import algorithm, chunking_hash
from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig
from rag_resources.core.golden import golden_hash
from rag_resources.core.judging import RULES_VERSION
from rag_resources.core.migration_gate import Baseline, judge_batch
from rag_resources.core.query import classify, decompose
from rag_resources.core.types import Note
from rag_resources.indexing.chunk import build_chunks
from rag_resources.languages import messages
from rag_resources.languages.messages import Text, _, joined, restored, to_stored
from rag_resources.prompts import prompts_version
from tests.strategies import STORABLE, golden_entries, notes

NOW = datetime(2025, 3, 14, tzinfo=UTC)


def fingerprint(note: Note, entries: Any, hits: Mapping[UUID, bool]) -> str:
    """Everything hashed, embedded or stored that can be computed without a database."""
    algorithm.cache_clear()
    chunks = build_chunks(note, ChunkingConfig())
    before = Baseline(UUID(int=1), "hybrid", dict.fromkeys(hits, True))
    verdict = judge_batch(hits, before, floor=0.5, level=0.05)
    return json.dumps(
        [
            chunking_hash(ChunkingConfig()),
            [[chunk.content, chunk.context, chunk.topics, str(chunk.chunk_id)] for chunk in chunks],
            RetrievalConfig().config_hash,
            golden_hash(entries),
            [RULES_VERSION, QUOTATION_VERSION, prompts_version()],
            [[classify(entry.query), decompose(entry.query)] for entry in entries],
            to_stored(verdict.reason),
            to_stored(
                joined(": ", [_("must not be empty"), _(SENTENCE).format(value=_(SENTENCE))])
            ),
        ]
    )


SENTENCE = "“{value}” is not a text: put it in quotes"


@given(
    notes(),
    st.lists(golden_entries(), max_size=3),
    st.lists(st.booleans(), min_size=1, max_size=20),
)
def test_property_53_changing_the_wording_of_messages_changes_nothing_that_is_kept(
    content: str, entries: list[Any], found: list[bool]
) -> None:
    note = Note(UUID(int=7), "Título", content, NOW)
    hits = {UUID(int=number): hit for number, hit in enumerate(found)}
    before = fingerprint(note, entries, hits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "operators", lambda: "en")
        assert _(SENTENCE) == SENTENCE
        after = fingerprint(note, entries, hits)
    assert after == before


def values(texts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    plain = st.one_of(
        st.text(STORABLE, max_size=20),
        st.integers(-(10**9), 10**9),
        st.floats(allow_nan=False),
        st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(fold=0)),
    )
    return st.one_of(plain, texts, st.lists(st.one_of(plain, texts), max_size=3).map(tuple))


TEXTS: st.SearchStrategy[Text] = st.recursive(
    st.just(_("must not be empty")),
    lambda inner: st.one_of(
        st.builds(lambda value: _(SENTENCE).format(value=value), values(inner)),
        st.lists(inner, max_size=3).map(lambda items: joined("; ", items)),
    ),
    max_leaves=4,
)


@given(TEXTS)
def test_what_is_stored_of_a_text_gives_it_back(text: Text) -> None:
    stored = json.loads(json.dumps(to_stored(text), allow_nan=False))
    again = restored(stored)
    assert isinstance(again, Text)
    assert (again, again.msgid, again.values) == (text, text.msgid, text.values)
    assert to_stored(again) == to_stored(text)


@given(st.text(max_size=50))
def test_other_peoples_words_are_stored_as_they_are(words: str) -> None:
    stored = to_stored(words)
    json.dumps(stored).encode()
    assert "\\u0000" not in json.dumps(stored)
    if "\0" not in words and not any("\ud800" <= letter <= "\udfff" for letter in words):
        assert restored(stored) == words
