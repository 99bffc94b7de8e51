"""Makes the workloads: a question set in the format of SQuAD, or the generated corpus.

Passages are cut by our chunker and embedded here, once for everybody; what is kept is `workload`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid5

from benchmarks.corpus import CHUNKS_PER_NOTE, Corpus, FastEmbedder
from benchmarks.peers.workload import BenchNote, Passage, Question, save, vector_key
from rag_resources.cli.output import progress
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.contextual import contextual_text
from rag_resources.core.types import Chunk, Note, NoteRecord, TimeWindow, Vectors
from rag_resources.evaluation.question_sets import QuestionSet
from rag_resources.indexing.chunk import build_chunks
from rag_resources.providers.protocols import Embedder

BATCH_TEXTS = 64
_NAMESPACE = UUID("5e3a6c0e-2b5f-4d6c-9f0a-7d1c1f1b8f11")
_WINDOW = TimeWindow(datetime(2024, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC))


def save_dataset(
    folder: Path, dataset: QuestionSet, embedder: Embedder, *, questions: int | None
) -> None:
    """Keep notes with questions that have answers."""
    asked = [Question(question.query, question.notes) for question in dataset.questions[:questions]]
    _save(folder, dataset.notes, asked, embedder)


def save_generated(folder: Path, passages: int) -> None:
    """Keep notes of about as many passages, without questions."""
    corpus = Corpus()
    notes = list(corpus.records(passages // CHUNKS_PER_NOTE, _WINDOW, stream=1))
    _save(folder, notes, [], FastEmbedder(corpus))


def _save(
    folder: Path, records: Sequence[NoteRecord], questions: Sequence[Question], embedder: Embedder
) -> None:
    cut = [(record.external_id, chunk) for record in records for chunk in _chunks(record)]
    # The product has two vectors of a chunk: a peer uses the first.
    texts = dict.fromkeys(
        text
        for _, chunk in cut
        for text in (chunk.content, contextual_text(chunk.context, chunk.content))
    )
    vectors = dict(_embedded(embedder.embed_passages, list(texts), question=False))
    asked = [question.text for question in questions]
    vectors |= _embedded(embedder.embed_queries, asked, question=True)
    save(
        folder,
        asdict(embedder.info),
        [
            BenchNote(
                record.external_id, record.title, record.content, record.created_at.isoformat()
            )
            for record in records
        ],
        [
            Passage(f"{external_id}/{chunk.chunk_index}", external_id, chunk.content)
            for external_id, chunk in cut
        ],
        questions,
        vectors,
    )


def _chunks(record: NoteRecord) -> list[Chunk]:
    note_id = uuid5(_NAMESPACE, record.external_id)
    note = Note(note_id, record.title, record.content, record.created_at)
    return build_chunks(note, ChunkingConfig())


def _embedded(
    embed: Callable[[Sequence[str]], Vectors], texts: Sequence[str], *, question: bool
) -> Iterator[tuple[bytes, Vectors]]:
    with progress("vectors", total=len(texts)) as advance:
        for start in range(0, len(texts), BATCH_TEXTS):
            batch = texts[start : start + BATCH_TEXTS]
            for text, vector in zip(batch, embed(batch), strict=True):
                yield vector_key(text, question=question), vector
            advance(len(batch))
