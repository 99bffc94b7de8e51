"""A corpus of any size on which real questions can be asked: real sentences, shuffled into notes.

Random words are nobody's questions. Here every passage consists of sentences that somebody wrote,
and every question is one that somebody asked about one of the paragraphs. A passage's vector is
the mean of those of its sentences' paragraphs, with noise: 100,000 need no model.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid5

import numpy as np

from benchmarks.peers.workload import BenchNote, Passage, Question, save, vector_key
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.contextual import contextual_text
from rag_resources.core.query import decompose
from rag_resources.core.sentences import sentences
from rag_resources.core.types import Chunk, Note, Vectors
from rag_resources.core.windows import WindowsConfig, cut_windows, window_text
from rag_resources.evaluation.question_sets import QuestionSet
from rag_resources.indexing.chunk import build_chunks
from rag_resources.providers.protocols import Embedder

SEED = 11
SENTENCES = (3, 10)
"""Fewest and most sentences of a note."""
NOISE = 0.3
CONTEXT_NOISE = 0.15
_START = datetime(2024, 1, 1, tzinfo=UTC)
_SPAN = timedelta(days=720)
_NAMESPACE = UUID("0a8f7d5e-6a0e-4a53-9a56-5c3f0f3f2a11")


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    title: str
    paragraph: int


def save_shuffled(folder: Path, passages: int, dataset: QuestionSet, embedder: Embedder) -> None:
    """Keep notes of at least as many passages, and the questions of a data set of paragraphs.

    Questions of several parts are left out: the product would search for each part, too.

    Args:
        folder: For `workload.load`.
        passages: How many at least.
        dataset: With one paragraph a note.
        embedder: Of the paragraphs and the questions.
    """
    paragraphs = [note.content for note in dataset.notes]
    of_paragraphs = _embed(embedder.embed_passages, paragraphs)
    drawn = [
        _Sentence(note.content[span.start : span.end], note.title, number)
        for number, note in enumerate(dataset.notes)
        for span in sentences(note.content)
    ]
    notes: list[BenchNote] = []
    cut: list[Passage] = []
    vectors: dict[bytes, Vectors] = {}
    rng = np.random.default_rng([SEED, passages])
    windows_rng = np.random.default_rng([SEED, passages, 1])  # The other vectors stay as they were.
    for note, chosen in _notes(drawn, rng, passages):
        if len(cut) >= passages:
            break
        notes.append(note)
        for passage, in_context, numbers in _passages(note, chosen):
            cut.append(passage)
            mean = of_paragraphs[numbers].mean(axis=0)
            for text, noise in ((passage.text, NOISE), (in_context, CONTEXT_NOISE)):
                own = mean = _unit(mean + noise * _noise(rng, len(mean)))
                vectors[vector_key(text, question=False)] = own
        for text, numbers in _windows(note, chosen):
            mean = of_paragraphs[numbers].mean(axis=0)
            own = _unit(mean + NOISE * _noise(windows_rng, len(mean)))
            vectors.setdefault(vector_key(text, question=False), own)
    questions = [
        Question(question.query) for question in dataset.questions if not decompose(question.query)
    ]
    asked = [question.text for question in questions]
    for text, vector in zip(asked, _embed(embedder.embed_queries, asked), strict=True):
        vectors[vector_key(text, question=True)] = vector
    save(folder, asdict(embedder.info), notes, cut, questions, vectors)


def _notes(
    drawn: Sequence[_Sentence], rng: np.random.Generator, passages: int
) -> Iterator[tuple[BenchNote, list[_Sentence]]]:
    fewest, most = SENTENCES
    number = 0
    while True:
        size = rng.integers(fewest, most, endpoint=True)
        chosen = [drawn[place] for place in rng.integers(0, len(drawn), size)]
        created_at = _START + _SPAN * min(1, number / passages)
        content = " ".join(sentence.text for sentence in chosen)
        yield BenchNote(f"s{number}", chosen[0].title, content, created_at.isoformat()), chosen
        number += 1


def _passages(
    note: BenchNote, chosen: Sequence[_Sentence]
) -> Iterator[tuple[Passage, str, list[int]]]:
    """Cut a note; yield each passage, its text in context, and the paragraphs of its sentences."""
    for chunk in _chunks(note):
        paragraphs = _paragraphs(chosen, chunk.start_char, chunk.end_char)
        passage = Passage(
            f"{note.external_id}/{chunk.chunk_index}", note.external_id, chunk.content
        )
        yield passage, contextual_text(chunk.context, chunk.content), paragraphs


def _windows(note: BenchNote, chosen: Sequence[_Sentence]) -> Iterator[tuple[str, list[int]]]:
    """Yield the text of each window of a note's passages, and its sentences' paragraphs."""
    for chunk in _chunks(note):
        for span in cut_windows(chunk.content, WindowsConfig()):
            text = window_text(note.title, chunk.content[span.start : span.end])
            start = chunk.start_char + span.start
            yield text, _paragraphs(chosen, start, start + span.length)


def _chunks(note: BenchNote) -> list[Chunk]:
    note_id = uuid5(_NAMESPACE, note.external_id)
    made_at = datetime.fromisoformat(note.created_at)
    return build_chunks(Note(note_id, note.title, note.content, made_at), ChunkingConfig())


def _paragraphs(chosen: Sequence[_Sentence], start: int, end: int) -> list[int]:
    """The paragraphs of the sentences that a range of a note's characters touches."""
    ends = np.cumsum([len(sentence.text) + 1 for sentence in chosen])
    starts = ends - [len(sentence.text) + 1 for sentence in chosen]
    within = (starts < end) & (ends - 1 > start)
    return [chosen[place].paragraph for place in np.flatnonzero(within)]


def _embed(embed: Callable[[Sequence[str]], Vectors], texts: Sequence[str]) -> Vectors:
    return np.concatenate([embed(texts[start : start + 32]) for start in range(0, len(texts), 32)])


def _noise(rng: np.random.Generator, dimension: int) -> Vectors:
    drawn: Vectors = (rng.standard_normal(dimension) / np.sqrt(dimension)).astype(np.float32)
    return drawn


def _unit(vector: Vectors) -> Vectors:
    unit: Vectors = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit
