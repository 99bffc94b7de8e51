"""The parts of a backfill, each alone: the cost of the same index for any loader."""

from collections.abc import Sequence

from pgvector import HalfVector

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.contextual import contextual_text
from rag_resources.core.text import content_sha256
from rag_resources.core.types import Chunk, Vectors
from rag_resources.database.pool import Connection, Database
from rag_resources.indexing.chunk import build_chunks
from rag_resources.indexing.embed import BATCH_TEXTS
from rag_resources.store.notes import fetch_notes
from tests.benchmarks.corpus import MODEL, Corpus, copy_rows
from tests.benchmarks.costs import Cost, Meter

_BATCH_NOTES = 1_000

# As the product's, with their constraints, triggers and indexes, HNSW apart.
_CREATE = """
    CREATE TABLE alone_chunks (LIKE chunks INCLUDING ALL, FOREIGN KEY (note_id) REFERENCES notes);
    CREATE TRIGGER words BEFORE INSERT ON alone_chunks
    FOR EACH ROW EXECUTE FUNCTION chunk_words();
    CREATE TABLE alone_vectors (
        LIKE chunk_embeddings INCLUDING ALL,
        FOREIGN KEY (chunk_id) REFERENCES alone_chunks,
        FOREIGN KEY (model) REFERENCES embedding_models
    );
    ALTER TABLE alone_vectors SET (toast_tuple_target = 8160);"""
_INDEX = f"""
    CREATE INDEX ON alone_vectors
    USING hnsw ((embedding::halfvec({MODEL.dimension})) halfvec_cosine_ops);
    CREATE INDEX ON alone_vectors
    USING hnsw ((contextual_embedding::halfvec({MODEL.dimension})) halfvec_cosine_ops);"""
_DROP = "DROP TABLE alone_vectors, alone_chunks"

_COPY_CHUNKS = """COPY alone_chunks
    (id, note_id, content, context, topics, chunk_index, start_char, end_char)
    FROM STDIN (FORMAT binary)"""
_CHUNK_TYPES = ["uuid", "uuid", "text", "text", "text", "int4", "int4", "int4"]
_COPY_VECTORS = """COPY alone_vectors
    (chunk_id, model, embedding, contextual_embedding, content_sha256, contextual_sha256)
    FROM STDIN (FORMAT binary)"""
_VECTOR_TYPES = ["uuid", "text", "halfvec", "halfvec", "bytea", "bytea"]


def measure_parts(
    database: Database, corpus: Corpus, meter: Meter, *, config: ChunkingConfig
) -> dict[str, Cost]:
    """Cut and load all notes of a database into tables of their own, which are dropped again."""
    with database.transaction() as connection:
        connection.execute(_CREATE)
        rows = connection.execute("SELECT id FROM notes ORDER BY created_at DESC").fetchall()
    for start in range(0, len(rows), _BATCH_NOTES):
        with database.bulk() as connection:
            note_ids = [row.id for row in rows[start : start + _BATCH_NOTES]]
            notes = fetch_notes(connection, note_ids).values()
            with meter.measure("chunking"):
                chunks = [chunk for note in notes for chunk in build_chunks(note, config)]
            with meter.measure("COPY of chunks"):
                _copy_chunks(connection, chunks)
            with meter.measure("test embedder"):
                standard = _embed(corpus, [chunk.content for chunk in chunks])
                contextual = _embed(
                    corpus, [contextual_text(chunk.context, chunk.content) for chunk in chunks]
                )
            with meter.measure("COPY of vectors"):
                _copy_vectors(connection, chunks, standard, contextual)
                connection.commit()
    with database.autocommit() as connection:
        connection.execute("ANALYZE alone_vectors")
        with meter.measure("index build"):
            connection.execute(_INDEX)
        connection.execute(_DROP)
    return meter.costs


def _embed(corpus: Corpus, texts: Sequence[str]) -> list[Vectors]:
    return [
        vector
        for start in range(0, len(texts), BATCH_TEXTS)
        for vector in corpus.embed(texts[start : start + BATCH_TEXTS])
    ]


def _copy_chunks(connection: Connection, chunks: Sequence[Chunk]) -> None:
    rows = (
        (
            chunk.chunk_id,
            chunk.note_id,
            chunk.content,
            chunk.context,
            chunk.topics,
            chunk.chunk_index,
            chunk.start_char,
            chunk.end_char,
        )
        for chunk in chunks
    )
    copy_rows(connection, _COPY_CHUNKS, _CHUNK_TYPES, rows)


def _copy_vectors(
    connection: Connection,
    chunks: Sequence[Chunk],
    standard: Sequence[Vectors],
    contextual: Sequence[Vectors],
) -> None:
    rows = (
        (
            chunk.chunk_id,
            MODEL.name,
            HalfVector(vector),
            HalfVector(in_context),
            content_sha256(chunk.content),
            content_sha256(contextual_text(chunk.context, chunk.content)),
        )
        for chunk, vector, in_context in zip(chunks, standard, contextual, strict=True)
    )
    copy_rows(connection, _COPY_VECTORS, _VECTOR_TYPES, rows)
