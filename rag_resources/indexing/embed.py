"""Makes the vectors of a window's chunks and notes: claimed, deduplicated by content, batched."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from pgvector import HalfVector

from rag_resources.core.contextual import contextual_text
from rag_resources.core.errors import ModelMissingError, ProviderError, ProviderUnavailableError
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import Progress, no_progress
from rag_resources.providers.protocols import Embedder
from rag_resources.store import embeddings as store
from rag_resources.store.embeddings import ChunkText
from rag_resources.store.failures import Failure, clear_failures, record_failure

BATCH_NOTES = 64
BATCH_TEXTS = 64


@dataclass
class EmbedReport:
    """What became of a window's texts.

    Attributes:
        notes: Notes completed.
        vectors: Vectors written.
        embedded: Texts the model was run on.
        reused: Texts whose vector was known.
        failed: Texts the model could not embed.
    """

    notes: int = 0
    vectors: int = 0
    embedded: int = 0
    reused: int = 0
    failed: list[Failure] = field(default_factory=list)


def embed_chunks(
    database: Database, embedder: Embedder, window: TimeWindow, *, progress: Progress = no_progress
) -> EmbedReport:
    """Give the chunks of a window's queued notes their standard and contextual vectors.

    A text the model refuses is recorded; its note stays queued, and so is searched as a whole.

    Raises:
        ProviderUnavailableError: The model does not answer; what is committed stays.
        DatabaseUnavailableError: The database was lost; what is committed stays.

    Properties: 19, 41, 42.
    """
    report, model = EmbedReport(), embedder.info.name
    incomplete: list[UUID] = []
    while True:
        with database.bulk() as connection:
            claimed = store.claim_pending(
                connection, model, window, skipped=incomplete, batch_size=BATCH_NOTES
            )
            if not claimed:
                return report
            chunks = store.select_chunk_texts(connection, model, claimed)
            texts = _texts(chunks)
            known = store.find_reusable(connection, model, texts) if texts else {}
            made, errors = embed_each(
                embedder, {key: texts[key] for key in texts if key not in known}
            )
            vectors = known | made
            ready = [
                chunk
                for chunk in chunks
                if chunk.content_sha256 in vectors and chunk.contextual_sha256 in vectors
            ]
            store.write_chunk_vectors(connection, model, ready, vectors)
            completed = store.complete_pending(connection, model, claimed)
            failures = [_failure(chunk, errors, model) for chunk in chunks if chunk not in ready]
            for failure in failures:
                record_failure(connection, failure)
            clear_failures(connection, "embed_chunk", completed, model=model)
        incomplete.extend(set(claimed) - set(completed))
        report.failed.extend(failures)
        report.notes += len(completed)
        report.vectors += 2 * len(ready)
        report.embedded += len(made)
        report.reused += len(known)
        progress(len(claimed))


def embed_notes(
    database: Database, embedder: Embedder, window: TimeWindow, *, progress: Progress = no_progress
) -> EmbedReport:
    """Give the notes of a window their whole-note vectors. Same errors as `embed_chunks`."""
    report, model = EmbedReport(), embedder.info.name
    skipped: list[UUID] = []
    while True:
        with database.bulk() as connection:
            notes = store.select_note_texts(
                connection, model, window, skipped=skipped, batch_size=BATCH_NOTES
            )
            if not notes:
                return report
            made, errors = embed_each(
                embedder, {note.content_sha256: note.content for note in notes}
            )
            ready = [note for note in notes if note.content_sha256 in made]
            store.write_note_vectors(
                connection, model, ready, [made[note.content_sha256] for note in ready]
            )
            failures = [
                Failure("embed_note", note.note_id, errors[note.content_sha256], model=model)
                for note in notes
                if note.content_sha256 in errors
            ]
            for failure in failures:
                record_failure(connection, failure)
            clear_failures(connection, "embed_note", [note.note_id for note in ready], model=model)
        skipped.extend(failure.note_id for failure in failures)
        report.failed.extend(failures)
        report.notes += len(ready)
        report.vectors += len(ready)
        report.embedded += len(made)
        progress(len(notes))


def embed_each(
    embedder: Embedder, texts: dict[bytes, str]
) -> tuple[dict[bytes, HalfVector], dict[bytes, str]]:
    """Embed texts in batches; a batch that fails is split until the bad text is alone.

    Args:
        embedder: The model.
        texts: By hash.

    Returns:
        The vectors by hash, and the reason of each text that has none.

    Raises:
        ProviderUnavailableError: The model does not answer at all.
    """
    made: dict[bytes, HalfVector] = {}
    errors: dict[bytes, str] = {}
    # Batches of similar length waste least.
    keys = sorted(texts, key=lambda key: (len(texts[key]), key))
    pending = [keys[start : start + BATCH_TEXTS] for start in range(0, len(keys), BATCH_TEXTS)]
    while pending:
        batch = pending.pop()
        try:
            vectors = embedder.embed_passages([texts[key] for key in batch])
        except (ProviderUnavailableError, ModelMissingError):
            raise
        except ProviderError as error:
            if len(batch) == 1:
                errors[batch[0]] = error.message
            else:
                middle = len(batch) // 2
                pending.extend((batch[:middle], batch[middle:]))
            continue
        made.update((key, HalfVector(vector)) for key, vector in zip(batch, vectors, strict=True))
    return made, errors


def _texts(chunks: Iterable[ChunkText]) -> dict[bytes, str]:
    texts: dict[bytes, str] = {}
    for chunk in chunks:
        texts[chunk.content_sha256] = chunk.content
        texts[chunk.contextual_sha256] = contextual_text(chunk.context, chunk.content)
    return texts


def _failure(chunk: ChunkText, errors: dict[bytes, str], model: str) -> Failure:
    reason = errors.get(chunk.content_sha256) or errors[chunk.contextual_sha256]
    return Failure("embed_chunk", chunk.note_id, reason, chunk_id=chunk.chunk_id, model=model)


def total(reports: Sequence[EmbedReport]) -> EmbedReport:
    """Add up the reports of several windows."""
    return EmbedReport(
        notes=sum(report.notes for report in reports),
        vectors=sum(report.vectors for report in reports),
        embedded=sum(report.embedded for report in reports),
        reused=sum(report.reused for report in reports),
        failed=[failure for report in reports for failure in report.failed],
    )
