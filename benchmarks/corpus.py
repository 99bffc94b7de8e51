"""A reproducible synthetic corpus of any size, as notes or written directly as an index.

Vectors lie in clusters and words follow Zipf's law, as real ones do. What is written straight into
PostgreSQL is neither ingested, chunked nor embedded, so that 100,000 chunks take minutes. The
questions of a benchmark come from here too.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID
from zlib import crc32

import numpy as np
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from rag_resources.core.retrievers import VectorKind
from rag_resources.core.text import content_sha256
from rag_resources.core.types import ModelInfo, NoteRecord, TimeWindow, Vectors
from rag_resources.database.pool import Connection, Database
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.models import register_model
from rag_resources.store.vector_indexes import ensure_vector_indexes

Words = np.ndarray[Any, np.dtype[np.str_]]
Measure = Callable[[str], AbstractContextManager[None]]

MODEL = ModelInfo("bench", 384, "test", "1", 0.0, 512)
CHUNKS_PER_NOTE = 2
WORDS_PER_CHUNK = 80
WORDS_PER_SENTENCE = 10
WORDS_PER_NOTE = 340
WORDS_PER_QUESTION = 8
MONTHS = 24

_VOCABULARY = 30_000
_CLUSTERS = 1_000
_NOISE = 0.6
_CONTEXT_NOISE = 0.2
_QUESTION_VECTORS = 4_096
_TEXT_NOISES = 4_096
_BATCH = 500
_START = datetime(2024, 1, 1, tzinfo=UTC)
_SYLLABLES = [
    onset + vowel
    for onset in ("b", "c", "ch", "d", "f", "g", "l", "ll", "m", "n", "p", "r", "s", "t", "tr", "v")
    for vowel in "aeiou"
]
_ENDINGS = ("", "s", "n", "r", "do", "dad", "mente", "ción", "ía")

_COPY_NOTES = """COPY notes
    (id, source, external_id, title, content, tags, metadata, created_at, chunked_at, chunking_hash,
    tenant_id) FROM STDIN (FORMAT binary)"""
_NOTE_TYPES = [
    *("uuid", "text", "text", "text", "text", "text[]", "jsonb"),
    *("timestamptz", "timestamptz", "text", "text"),
]
_COPY_CHUNKS = """COPY chunks
    (id, note_id, content, context, chunk_index, start_char, end_char, tenant_id)
    FROM STDIN (FORMAT binary)"""
_CHUNK_TYPES = ["uuid", "uuid", "text", "text", "int4", "int4", "int4", "text"]
_COPY_VECTORS = """COPY vectors
    (chunk_id, model, kind, embedding, text_sha256, tenant_id) FROM STDIN (FORMAT binary)"""
_VECTOR_TYPES = ["uuid", "text", "text", "halfvec", "bytea", "text"]


class Corpus:
    """The source of a synthetic index and of questions about it.

    Args:
        seed: Of everything drawn.
    """

    def __init__(self, seed: int = 7) -> None:
        self._seed = seed
        rng = np.random.default_rng(seed)
        self._words = _vocabulary(rng)
        shares = 1 / np.arange(1, len(self._words) + 1)
        self._cumulated = np.cumsum(shares / shares.sum())
        self._centres = _normalised(rng.standard_normal((_CLUSTERS, MODEL.dimension)))

    def load(
        self, database: Database, chunks: int, measure: Measure = lambda _: nullcontext()
    ) -> None:
        """Fill a migrated database with an index like the product's, unless it exists.

        Args:
            database: Open; what else it holds is deleted.
            chunks: How many, a multiple of `CHUNKS_PER_NOTE`.
            measure: Surrounds each of its steps, by name.
        """
        with database.transaction() as connection:
            loaded = connection.execute(
                "SELECT sum(chunk_count)::int FROM corpus_statistics"
            ).fetchone()
            if loaded == (chunks,):
                return
            connection.execute("TRUNCATE notes CASCADE")
            register_model(
                connection, MODEL, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
            )
        rng = np.random.default_rng([self._seed, chunks])
        notes = chunks // CHUNKS_PER_NOTE
        with measure("rows"):
            for first in range(0, notes, _BATCH):
                with database.bulk() as connection:
                    numbers = range(first, min(first + _BATCH, notes))
                    self._load_notes(connection, numbers, notes, rng)
        with measure("vector indexes"):
            ensure_vector_indexes(database, MODEL, min_rows=1)
        with measure("vacuum"), database.autocommit() as connection:
            connection.execute("VACUUM ANALYZE")
        # Last: its count of chunks tells the next run that all is done.
        with measure("statistics"), database.transaction() as connection:
            refresh_statistics(connection)

    def records(self, count: int, window: TimeWindow, *, stream: int) -> Iterator[NoteRecord]:
        """Yield notes spread evenly over a window, of two chunks each or nearly so."""
        rng = np.random.default_rng([self._seed, stream, 3])
        step = (window.end - window.start) / count
        for number in range(count):
            yield NoteRecord(
                f"{stream}-{number}",
                f"Nota {number}",
                self._text(rng, WORDS_PER_NOTE),
                window.start + number * step,
            )

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text that depends on nothing else: L2-normalised rows."""
        digests = np.array([crc32(text.encode()) for text in texts])
        noise = self._noise_of_texts[digests // _CLUSTERS % _TEXT_NOISES]
        return _normalised(self._centres[digests % _CLUSTERS] + _NOISE * noise)

    def questions(self, count: int, *, stream: int) -> list[str]:
        """Draw distinct questions; each stream draws other ones."""
        rng = np.random.default_rng([self._seed, stream, 1])
        drawn = self._draw_words(rng, count * WORDS_PER_QUESTION).reshape(count, -1)
        return [f"¿{' '.join(words)}?" for words in drawn]

    @cached_property
    def _noise_of_texts(self) -> Vectors:
        return _noise(np.random.default_rng([self._seed, 4]), _TEXT_NOISES)

    @cached_property
    def question_vectors(self) -> Vectors:
        """Of any question: `(4096, 384)` float32, L2-normalised, near the chunks' vectors."""
        return self._draw_vectors(np.random.default_rng([self._seed, 2]), _QUESTION_VECTORS)

    def _load_notes(
        self, connection: Connection, numbers: range, notes: int, rng: np.random.Generator
    ) -> None:
        drafts = [self._draft(number, notes, rng) for number in numbers]
        count = len(drafts) * CHUNKS_PER_NOTE
        vectors = self._draw_vectors(rng, count)
        contextual = _normalised(vectors + _CONTEXT_NOISE * _noise(rng, count))
        chunks = [chunk for draft in drafts for chunk in draft.chunks]
        copy_rows(connection, _COPY_NOTES, _NOTE_TYPES, (draft.row for draft in drafts))
        copy_rows(connection, _COPY_CHUNKS, _CHUNK_TYPES, chunks)
        for kind, own in (("chunk", vectors), ("contextual", contextual)):
            rows = (
                (
                    *(chunk_id, MODEL.name, kind, HalfVector(vector)),
                    content_sha256(content if kind == "chunk" else f"{context}\n{content}"),
                    tenant,
                )
                for (chunk_id, _, content, context, *_, tenant), vector in zip(
                    chunks, own, strict=True
                )
            )
            copy_rows(connection, _COPY_VECTORS, _VECTOR_TYPES, rows)

    def _draft(self, number: int, notes: int, rng: np.random.Generator) -> "_Draft":
        note_id, *chunk_ids = (UUID(bytes=rng.bytes(16)) for _ in range(1 + CHUNKS_PER_NOTE))
        title, tenant = f"Nota {number}", "default"
        texts = [self._text(rng, WORDS_PER_CHUNK) for _ in chunk_ids]
        chunks = []
        start = 0
        created_at = _START + timedelta(days=30.4 * MONTHS * number / notes)
        for index, (chunk_id, text) in enumerate(zip(chunk_ids, texts, strict=True)):
            end = start + len(text)
            context = f"Parte {index + 1} de {CHUNKS_PER_NOTE} de una nota sobre: {title}."
            chunks.append((chunk_id, note_id, text, context, index, start, end, tenant))
            start = end + 1
        row = (
            note_id,
            ("diario", "reuniones", "documentos")[number % 3],
            f"n{number}",
            title,
            " ".join(texts),
            [f"etiqueta{number % 20}", f"rara{number % 500}"],
            Jsonb({"proyecto": number % 50}),
            created_at,
            created_at,
            "bench",
            tenant,
        )
        return _Draft(row, chunks)

    def _text(self, rng: np.random.Generator, length: int) -> str:
        words = self._draw_words(rng, length).reshape(-1, WORDS_PER_SENTENCE)
        return " ".join(f"{' '.join(sentence).capitalize()}." for sentence in words)

    def _draw_words(self, rng: np.random.Generator, count: int) -> Words:
        ranks = np.searchsorted(self._cumulated, rng.random(count))
        return self._words[np.minimum(ranks, len(self._words) - 1)]

    def _draw_vectors(self, rng: np.random.Generator, count: int) -> Vectors:
        centres = self._centres[rng.integers(0, _CLUSTERS, count)]
        return _normalised(centres + _NOISE * _noise(rng, count))


class FastEmbedder:
    """Gives every text its own vector at almost no cost."""

    info = MODEL

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Derive a vector from each text."""
        return self._corpus.embed(texts)

    embed_queries = embed_passages


class StoredEmbedder:
    """Gives any question one of the corpus's vectors, at once: it stands for no model at all."""

    info = MODEL

    def __init__(self, corpus: Corpus) -> None:
        self._vectors = corpus.question_vectors

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Look up a vector by each text."""
        numbers = [crc32(text.encode()) % len(self._vectors) for text in texts]
        found: Vectors = self._vectors[numbers]
        return found

    embed_passages = embed_queries


@dataclass(frozen=True)
class _Draft:
    row: tuple[object, ...]
    chunks: list[tuple[UUID, UUID, str, str, int, int, int, str]]


def _vocabulary(rng: np.random.Generator) -> Words:
    """Words of syllables, the most frequent first."""
    words: dict[str, None] = {}
    while len(words) < _VOCABULARY:
        syllables = rng.choice(_SYLLABLES, rng.integers(2, 5))
        words["".join(syllables) + rng.choice(_ENDINGS)] = None
    return np.array(list(words))


def _noise(rng: np.random.Generator, count: int) -> Vectors:
    """Vectors of length about 1, `(count, 384)`."""
    drawn = rng.standard_normal((count, MODEL.dimension))
    scaled: Vectors = (drawn / np.sqrt(MODEL.dimension)).astype(np.float32)
    return scaled


def _normalised(vectors: np.ndarray[Any, np.dtype[np.floating[Any]]]) -> Vectors:
    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def copy_rows(
    connection: Connection,
    command: str,
    types: Sequence[str],
    rows: Iterable[tuple[object, ...]],
) -> None:
    """Write rows by a binary COPY."""
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)
