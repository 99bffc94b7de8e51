"""Hypothesis strategies shared by the tests: notes, configurations, rankings, golden entries.

They generate valid values unless the name says otherwise; each test corrupts them as it needs.
"""

import unicodedata
from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from rag_resources.core.configuration import (
    ChunkingConfig,
    ContextConfig,
    FusionConfig,
    RerankingConfig,
    RetrievalConfig,
    Strategy,
    TopKConfig,
    TransformationConfig,
)
from rag_resources.core.golden import CATEGORIES, GoldenEntry
from rag_resources.core.metrics import JudgedRanking
from rag_resources.core.text import Span, count_tokens
from rag_resources.core.types import Candidate, Ranking, Retriever

Draw = st.DrawFn

# --- Texts ------------------------------------------------------------------------------------

STORABLE = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
"""What PostgreSQL stores as text: anything but NUL and lone surrogates."""

WORDS = [
    *("a", "y", "o", "que", "pero", "porque", "si", "la", "de", "casa", "niño", "ÑANDÚ"),
    *("árbol", "electroencefalografista", "casa,", "tarde;", "así:", "—", "2024", "3,5", "12:30"),
    *("10.000", "https://ejemplo.es/a?b=1", "#etiqueta"),
    *(unicodedata.normalize("NFD", word) for word in ("camión", "él", "pingüino,")),
    *("😀", "👩‍👩‍👧", "🇪🇸", "👍🏽", "❤️"),
    *("Sr.", "Dra.", "n.º 12", "9 a. m.", "aprox.", "p. ej.", "EE. UU.", "etc.", "pág. 7"),
]
ENDS = [".", ".", ".", "!", "?", "…", "...", ".»", ")", "", ""]
SEPARATORS = [
    *(" ", " ", " ", "  ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\n- ", "\n* ", "\n1. ", "\t"),
    *("\u00a0", "\u2028", "\u3000", "\n# ", " — ", ""),
]


def long_words() -> st.SearchStrategy[str]:
    """One letter (accented, combined or an emoji) repeated up to several chunks' worth."""
    return st.builds(
        lambda letter, length: letter * length,
        st.sampled_from(["x", "ñ", "e\u0301", "😀"]),
        st.integers(1, 400),
    )


@st.composite
def sentence_texts(draw: Draw, max_words: int = 16) -> str:
    """One sentence, or what passes for it: clauses between marks, perhaps without a full stop."""
    common = st.lists(st.sampled_from(WORDS), min_size=1, max_size=max_words).map(" ".join)
    raw = st.text(STORABLE, min_size=1, max_size=12)
    body = draw(st.one_of(common, common, common, common, long_words(), raw))
    opening, end = draw(st.tuples(st.sampled_from(["", "", "¿", "«"]), st.sampled_from(ENDS)))
    return opening + body + end


@st.composite
def any_notes(draw: Draw, max_sentences: int = 9) -> str:
    """A note of any shape: paragraphs, lists, CRLF, odd white space at its edges; may be blank."""
    pieces = draw(
        st.lists(
            st.tuples(st.sampled_from(SEPARATORS), sentence_texts()),
            max_size=max_sentences,
        )
    )
    body = "".join(separator + sentence for separator, sentence in pieces)
    return body + draw(st.sampled_from(["", "", "\n", "\r\n", " \t", "\u3000"]))


def notes(max_sentences: int = 9) -> st.SearchStrategy[str]:
    """A note that is not blank."""
    return any_notes(max_sentences).filter(lambda text: bool(text.strip()))


def plain_notes(max_sentences: int = 30) -> st.SearchStrategy[str]:
    """A note of short, plain sentences: none is over-long for any configuration generated here."""
    sentence = st.integers(1, 56).map(lambda letters: "A" + "b" * letters + ".")
    return st.lists(sentence, min_size=1, max_size=max_sentences).map(" ".join)


def blank_texts() -> st.SearchStrategy[str]:
    """Nothing but white space, of every kind Unicode has."""
    return st.text(st.sampled_from(" \t\n\r\x0b\x0c\x1c\x85\u00a0\u2003\u2028\u2029\u3000"))


def visible_texts(max_size: int = 60) -> st.SearchStrategy[str]:
    """A storable text with at least one character that is not white space."""
    return st.text(STORABLE, min_size=1, max_size=max_size).filter(lambda text: bool(text.strip()))


# --- Chunking and context ---------------------------------------------------------------------


def count_words(text: str) -> int:
    """Count words: a token counter very unlike the estimate."""
    return len(text.split())


def count_bytes(text: str) -> int:
    """Count UTF-8 bytes: a token counter for which one character can be several tokens."""
    return len(text.encode())


def token_counters() -> st.SearchStrategy[Callable[[str], int]]:
    """The estimate, words or bytes; none decreases when a text grows."""
    return st.sampled_from([count_tokens, count_words, count_bytes])


@st.composite
def chunking_configs(draw: Draw, max_tokens: int = 96) -> ChunkingConfig:
    """A valid chunking configuration, small so that short notes give many chunks."""
    size = draw(st.integers(16, max_tokens))
    return ChunkingConfig(
        max_tokens=size,
        overlap_tokens=draw(st.one_of(st.integers(0, size // 3), st.integers(0, size - 1))),
        min_tokens=draw(st.one_of(st.integers(0, size // 3), st.integers(0, size - 1))),
    )


def context_configs() -> st.SearchStrategy[ContextConfig]:
    """Up to four sentences on each side."""
    return st.builds(
        ContextConfig, sentences_before=st.integers(0, 4), sentences_after=st.integers(0, 4)
    )


def spans_of(text: str) -> st.SearchStrategy[Span]:
    """A non-empty span of a non-empty text, on any border."""
    return (
        st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
        .filter(lambda pair: pair[0] != pair[1])
        .map(lambda pair: Span(min(pair), max(pair)))
    )


# --- Retrieval configuration ------------------------------------------------------------------


def shares() -> st.SearchStrategy[float]:
    """A number in [0, 1], both ends and the negative zero included."""
    return st.one_of(st.sampled_from([0.0, -0.0, 0.5, 1.0]), st.floats(0, 1))


@st.composite
def fusion_configs(draw: Draw) -> FusionConfig:
    """A valid fusion configuration of either method."""
    semantic, fulltext = draw(
        st.tuples(shares(), shares()).filter(lambda weights: any(weights)), label="weights"
    )
    return FusionConfig(
        method=draw(st.sampled_from(["rrf", "weighted"])),
        rank_constant=draw(st.one_of(st.just(60), st.integers(1, 10_000))),
        semantic_weight=semantic,
        fulltext_weight=fulltext,
    )


@st.composite
def top_k_configs(draw: Draw) -> TopKConfig:
    """A valid pair of sizes."""
    final = draw(st.integers(1, 50))
    return TopKConfig(retrieval=draw(st.integers(final, 500)), final=final)


def retrieval_configs() -> st.SearchStrategy[RetrievalConfig]:
    """A valid retrieval configuration."""
    return st.builds(
        RetrievalConfig,
        unit=st.sampled_from(["chunks", "notes"]),
        strategy=st.sampled_from(Strategy),
        model=st.sampled_from(["e5_small", "use_m3", "nomic_embed_text"]),
        similarity_threshold=st.none() | shares(),
        contextual=st.booleans(),
        fusion=fusion_configs(),
        reranking=st.builds(
            RerankingConfig,
            enabled=st.booleans(),
            weight=shares(),
            batch_size=st.integers(1, 50),
            timeout_ms=st.integers(1, 5_000),
        ),
        transformation=st.builds(TransformationConfig),
        diversity_weight=shares(),
        tie_break=st.sampled_from(["chunk_id", "recency"]),
        context=context_configs(),
        top_k=top_k_configs(),
    )


# --- Rankings ---------------------------------------------------------------------------------


def uuid_number(number: int) -> UUID:
    """A readable UUID for hand-written tests; their order is that of the numbers."""
    return UUID(int=number)


@st.composite
def rankings(draw: Draw, *, retriever: Retriever | None = None, pool: int = 12) -> Ranking:
    """One retriever's list: no repeats, scores in [0, 1] never increasing, perhaps empty.

    Chunks come from a small pool shared by all rankings, so that lists overlap; chunk `i` belongs
    to the same note everywhere.
    """
    numbers = draw(st.lists(st.integers(1, pool), unique=True, max_size=pool))
    scores = draw(st.lists(st.floats(0, 1), min_size=len(numbers), max_size=len(numbers)))
    return Ranking(
        retriever=retriever or draw(st.sampled_from(Retriever)),
        candidates=tuple(
            Candidate(
                chunk_id=uuid_number(number), note_id=uuid_number(1000 + number // 3), score=score
            )
            for number, score in zip(numbers, sorted(scores, reverse=True), strict=True)
        ),
    )


@st.composite
def weighted_rankings(draw: Draw, max_lists: int = 6) -> tuple[list[Ranking], list[float]]:
    """Any number of lists (at least one) with a weight each in [0, 1], not all 0."""
    lists = draw(st.lists(rankings(), min_size=1, max_size=max_lists))
    weights = draw(
        st.lists(shares(), min_size=len(lists), max_size=len(lists)).filter(lambda all_: any(all_))
    )
    return lists, weights


@st.composite
def retrieved_lists(draw: Draw) -> list[Ranking]:
    """The lists of one question: each retriever at most once, in any order."""
    retrievers = draw(st.lists(st.sampled_from(Retriever), unique=True))
    return [draw(rankings(retriever=retriever)) for retriever in retrievers]


# --- Golden dataset ---------------------------------------------------------------------------


def timestamps() -> st.SearchStrategy[Any]:
    """An aware timestamp, of any whole-minute offset."""
    zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
    return st.datetimes(timezones=st.one_of(st.just(UTC), zones))


def golden_entries() -> st.SearchStrategy[GoldenEntry]:
    """A valid golden entry, tags and timestamps included."""
    return st.builds(
        GoldenEntry,
        query=st.one_of(sentence_texts(max_words=6), visible_texts()).filter(
            lambda text: bool(text.strip())
        ),
        relevant_note_ids=st.lists(st.uuids(), min_size=1, max_size=4, unique=True).map(tuple),
        expected_answer=visible_texts(),
        category=st.sampled_from(CATEGORIES),
        difficulty=st.integers(1, 5),
        tags=st.lists(st.text(STORABLE, max_size=12), max_size=3).map(tuple),
        golden_id=st.none() | st.uuids(),
        created_at=st.none() | timestamps(),
        updated_at=st.none() | timestamps(),
    )


def golden_datasets(min_size: int = 0, max_size: int = 3) -> st.SearchStrategy[list[GoldenEntry]]:
    """Valid entries of which no two share a question."""
    return st.lists(
        golden_entries(),
        min_size=min_size,
        max_size=max_size,
        unique_by=(lambda entry: entry.normalized_query, lambda entry: entry.golden_id or object()),
    )


# --- Metrics ----------------------------------------------------------------------------------


def judged_rankings() -> st.SearchStrategy[JudgedRanking]:
    """What a question retrieved, perhaps nothing or notes repeated, and what it should have."""
    note_ids = st.integers(0, 15).map(lambda number: f"nota-{number}")
    return st.builds(
        JudgedRanking,
        relevant=st.frozensets(note_ids, min_size=1, max_size=5),
        retrieved=st.lists(note_ids, max_size=30).map(tuple),
    )


def judged_runs(min_size: int = 0) -> st.SearchStrategy[dict[str, JudgedRanking]]:
    """The judged rankings of an evaluation by question id."""
    return st.dictionaries(
        st.integers(0, 50).map(lambda number: f"pregunta-{number}"),
        judged_rankings(),
        min_size=min_size,
        max_size=8,
    )
