"""The gain of re-ranking by sentences, and of each weight of sub-questions, on XQuAD-es.

    python -m tests.benchmarks.bench_reranking [folder where vectors are kept between runs]

Needs the file that `XQUAD` names, and does nothing without it. The lists are those of the product's
SQL (pool of 50; BM25 over both stemmings; standard and contextual vectors), computed in memory, and
fused by the product. Ranks count distinct notes; intervals are paired bootstraps of 95 %.
"""

import hashlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from uuid import UUID, uuid5

import numpy as np
import numpy.typing as npt
import psycopg

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.contextual import contextual_text
from rag_resources.core.deadline import Deadline
from rag_resources.core.fusion import fuse
from rag_resources.core.fusion_config import DEFAULT_RETRIEVERS, FusionConfig
from rag_resources.core.reranking import rerank
from rag_resources.core.retrievers import RankedList
from rag_resources.core.sentences import sentences
from rag_resources.core.types import Candidate, Chunk, Note, Ranking, ScoredChunk, Vectors
from rag_resources.database.migrations import migrate
from rag_resources.database.server import EmbeddedServer
from rag_resources.indexing.chunk import build_chunks
from rag_resources.ingestion.squad import read_squad
from rag_resources.providers.embedded_e5 import E5Embedder
from rag_resources.providers.embedded_use import USEEmbedder
from rag_resources.providers.protocols import Embedder
from rag_resources.retrieval.rerank_sentences import SentenceReranker

SHARED = Path(__file__).resolve().parents[3] / "shared"
XQUAD = Path(os.environ.get("XQUAD", SHARED / "data" / "xquad-es" / "xquad.es.json"))
POOL = 50
PAIRS = 600
TIMED_QUESTIONS = 40
NAMESPACE = UUID(int=0)
write = sys.stdout.write

Scores = npt.NDArray[np.float64]
Lists = list[Ranking]


@dataclass(frozen=True)
class Corpus:
    """XQuAD-es as chunks, questions and the notes that answer them."""

    chunks: list[Chunk]
    queries: list[str]
    relevant: list[frozenset[UUID]]


@dataclass(frozen=True)
class Strategy:
    """Which lists of a question are fused, and how."""

    lists: frozenset[RankedList]
    fusion: FusionConfig


VECTORS = frozenset({RankedList.SEMANTIC, RankedList.CONTEXTUAL})
WORDS = frozenset({RankedList.FULLTEXT})
STRATEGIES = {
    "semantic": Strategy(VECTORS, FusionConfig()),
    "fulltext": Strategy(WORDS, FusionConfig()),
    "hybrid rrf": Strategy(VECTORS | WORDS, FusionConfig(method="rrf")),
    "hybrid weighted": Strategy(VECTORS | WORDS, FusionConfig(method="weighted")),
}


def read_corpus(paragraphs_per_note: int) -> Corpus:
    """Read and chunk the notes as the product does."""
    data = read_squad(XQUAD, paragraphs_per_note=paragraphs_per_note, questions=None, seed=0)
    chunks: list[Chunk] = []
    for record in data.notes:
        note_id = uuid5(NAMESPACE, record.external_id)
        note = Note(note_id, record.title, record.content, record.created_at)
        chunks += build_chunks(note, ChunkingConfig())
    relevant = [
        frozenset(uuid5(NAMESPACE, external_id) for external_id in question.note_external_ids)
        for question in data.questions
    ]
    return Corpus(chunks, [question.query for question in data.questions], relevant)


def sentence_texts(chunk: Chunk) -> list[str]:
    return [chunk.content[span.start : span.end] for span in sentences(chunk.content)]


class VectorStore:
    """Vectors of texts, kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(
        self, name: str, embed: Callable[[Sequence[str]], Vectors], texts: Sequence[str]
    ) -> Vectors:
        key = hashlib.sha256("\0".join([name, *texts]).encode()).hexdigest()[:16]
        path = self.folder / f"rr_{name}_{key}.npy"
        if not path.is_file():
            np.save(path, embed(texts))
        vectors: Vectors = np.load(path)
        return vectors


# --- The lists of a question ------------------------------------------------------------------


@contextmanager
def lexeme_counter() -> Iterator[Callable[[Sequence[str]], list[dict[str, int]]]]:
    """The occurrences of each lexeme of texts, by the product's own SQL function."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)  # or a root's server keeps its data elsewhere
        server = EmbeddedServer(Path(home))
        server.up()
        server.ensure_database("lexemes")
        migrate(server.dsn("lexemes"))

        def count(texts: Sequence[str]) -> list[dict[str, int]]:
            counts: list[dict[str, int]] = [{} for _ in texts]
            rows = connection.execute(
                "SELECT t.i, l.lexeme, cardinality(l.positions)"
                " FROM unnest(%s::text[]) WITH ORDINALITY AS t (content, i),"
                " unnest(spanish_tsvector(t.content)) AS l",
                [list(texts)],
            )
            for number, lexeme, occurrences in rows:
                counts[number - 1][lexeme] = occurrences
            return counts

        with psycopg.connect(server.dsn("lexemes")) as connection:
            yield count
        server.down()


def bm25(documents: Sequence[dict[str, int]], queries: Sequence[dict[str, int]]) -> Scores:
    """Score every document for every query as `search_fulltext_chunks` does, all as candidates.

    Returns:
        `(n_queries, n_documents)`, in [0, 1].
    """
    column: dict[str, int] = {}
    for counts in (*documents, *queries):
        for lexeme in counts:
            column.setdefault(lexeme, len(column))
    occurrences = np.zeros((len(documents), len(column)))
    for row, counts in enumerate(documents):
        for lexeme, count in counts.items():
            occurrences[row, column[lexeme]] = count
    frequency = (occurrences > 0).sum(axis=0)
    idf = np.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
    length = occurrences.sum(axis=1, keepdims=True)
    damping = 1.2 * (0.25 + 0.75 * length / length.mean())
    weights = idf * occurrences * 2.2 / (occurrences + damping)
    scores = np.zeros((len(queries), len(documents)))
    for row, counts in enumerate(queries):
        columns = [column[lexeme] for lexeme in counts]
        bound = idf[columns].sum() * 2.2
        scores[row] = weights[:, columns].sum(axis=1) / (bound or 1.0)
    return scores


def ranking(
    retriever: RankedList, chunks: Sequence[Chunk], scores: Scores, threshold: float, question: int
) -> Ranking:
    best = sorted(np.flatnonzero(scores > threshold), key=lambda row: (-scores[row], row))[:POOL]
    return Ranking(
        retriever,
        tuple(
            Candidate(chunks[row].chunk_id, chunks[row].note_id, min(1.0, float(scores[row])))
            for row in best
        ),
        question=question,
    )


@dataclass(frozen=True)
class Searcher:
    """The three lists of any question over one corpus."""

    chunks: list[Chunk]
    standard: Vectors
    contextual: Vectors
    lexemes: list[dict[str, int]]
    count: Callable[[Sequence[str]], list[dict[str, int]]]

    def lists(self, queries: Sequence[str], vectors: Vectors, question: int = 0) -> list[Lists]:
        threshold = E5Embedder().info.similarity_threshold
        found = {
            RankedList.SEMANTIC: ((vectors @ self.standard.T).astype(float), threshold),
            RankedList.CONTEXTUAL: ((vectors @ self.contextual.T).astype(float), threshold),
            RankedList.FULLTEXT: (bm25(self.lexemes, self.count(queries)), 0.0),
        }
        return [
            [
                ranking(retriever, self.chunks, scores[row], least, question)
                for retriever, (scores, least) in found.items()
            ]
            for row in range(len(queries))
        ]


def searcher(
    corpus: Corpus,
    store: VectorStore,
    count: Callable[[Sequence[str]], list[dict[str, int]]],
) -> Searcher:
    embed = E5Embedder().embed_passages
    contextual = [contextual_text(chunk.context, chunk.content) for chunk in corpus.chunks]
    return Searcher(
        corpus.chunks,
        store.get("e5p", embed, [chunk.content for chunk in corpus.chunks]),
        store.get("e5p", embed, contextual),
        count([f"{chunk.topics} {chunk.content}" for chunk in corpus.chunks]),
        count,
    )


# --- Quality ----------------------------------------------------------------------------------


def note_ranks(chunks: Sequence[ScoredChunk], relevant: frozenset[UUID]) -> list[int]:
    """The ranks, among distinct notes, of the relevant notes found."""
    notes = dict.fromkeys(chunk.note_id for chunk in chunks)
    return [rank for rank, note_id in enumerate(notes, start=1) if note_id in relevant]


def reciprocal(ranks: Sequence[int]) -> float:
    return 1 / ranks[0] if ranks and ranks[0] <= 10 else 0.0


def interval(differences: Scores) -> str:
    """Mean of paired differences with its bootstrap interval."""
    generator = np.random.default_rng(0)
    picks = generator.integers(0, len(differences), (4_000, len(differences)))
    low, high = np.quantile(differences[picks].mean(axis=1), [0.025, 0.975])
    return f"{differences.mean():+.4f} [{low:+.4f}, {high:+.4f}]"


def summary(ranks: Sequence[Sequence[int]]) -> str:
    mrr = np.mean([reciprocal(own) for own in ranks])
    hits = [np.mean([bool(own) and own[0] <= cutoff for own in ranks]) for cutoff in (1, 10)]
    return f"MRR@10 {mrr:.4f}  Hit@1 {hits[0]:.4f}  Hit@10 {hits[1]:.4f}"


def best_sentences(corpus: Corpus, sentence_vectors: Vectors, questions: Vectors) -> Scores:
    """The best cosine between each question and a sentence of each chunk, clamped to [0, 1]."""
    own = [sentence_texts(chunk) for chunk in corpus.chunks]
    row = {text: i for i, text in enumerate(unique(own))}
    cosines = sentence_vectors @ questions.T
    best = [cosines[[row[text] for text in texts]].max(axis=0) for texts in own]
    return np.clip(np.array(best, dtype=float).T, 0.0, 1.0)


def unique(lists: Iterable[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(text for texts in lists for text in texts))


def compare_reranking(corpus: Corpus, lists: Sequence[Lists], models: Mapping[str, Scores]) -> None:
    """Print each strategy without and with re-ranking, and how far the two differ."""
    position = {chunk.chunk_id: row for row, chunk in enumerate(corpus.chunks)}

    def ranks_of(
        fused: list[ScoredChunk], question: int, best: Scores, top: int, weight: float
    ) -> list[int]:
        scores = {c.chunk_id: float(best[question, position[c.chunk_id]]) for c in fused[:top]}
        return note_ranks(rerank(fused, scores, weight), corpus.relevant[question])

    for name, strategy in STRATEGIES.items():
        fused = [
            fuse([r for r in own if r.name in strategy.lists], strategy.fusion, DEFAULT_RETRIEVERS)
            for own in lists
        ]
        plain = [note_ranks(f, r) for f, r in zip(fused, corpus.relevant, strict=True)]
        before = np.array([reciprocal(own) for own in plain])
        write(f"{name:15} {'':20} {summary(plain)}\n")
        for (model, best), top, weight in product(models.items(), (10, 20), (0.2, 0.35, 0.5)):
            ranks = [ranks_of(f, i, best, top, weight) for i, f in enumerate(fused)]
            after = np.array([reciprocal(own) for own in ranks])
            write(
                f"{name:15} {model:3} top {top:2} x {weight:<4.2f}"
                f"   {summary(ranks)}  MRR {interval(after - before)}\n"
            )


def compare_sub_questions(
    corpus: Corpus, search: Searcher, lists: Sequence[Lists], store: VectorStore
) -> None:
    """Print what searching the parts adds where two unrelated questions are asked as one."""
    rng = random.Random(7)
    pairs: list[tuple[int, int]] = []
    while len(pairs) < PAIRS:
        first, second = rng.sample(range(len(corpus.queries)), 2)
        if not corpus.relevant[first] & corpus.relevant[second]:
            pairs.append((first, second))
    composed = [f"{corpus.queries[first]} {corpus.queries[second]}" for first, second in pairs]
    whole = search.lists(composed, store.get("e5q", E5Embedder().embed_queries, composed))
    for name, strategy in STRATEGIES.items():
        recalls: list[dict[int, Scores]] = []
        for with_parts in (False, True):
            ranks = []
            for own, pair in zip(whole, pairs, strict=True):
                parts = [
                    replace(part, question=number)
                    for number, question in enumerate(pair, start=1)
                    for part in lists[question]
                ]
                used = [
                    item
                    for item in (own + parts if with_parts else own)
                    if item.name in strategy.lists
                ]
                relevant = corpus.relevant[pair[0]] | corpus.relevant[pair[1]]
                ranks.append(note_ranks(fuse(used, strategy.fusion, DEFAULT_RETRIEVERS), relevant))
            wanted = [len(corpus.relevant[a] | corpus.relevant[b]) for a, b in pairs]
            recalls.append({cutoff: recall(ranks, wanted, cutoff) for cutoff in (2, 5, 10)})
            at = "  ".join(f"recall@{c} {value.mean():.4f}" for c, value in recalls[-1].items())
            write(
                f"{name:15} {'with' if with_parts else 'without':7} parts  {summary(ranks)}  {at}\n"
            )
        gain = "  ".join(
            f"@{cutoff} {interval(recalls[1][cutoff] - recalls[0][cutoff])}"
            for cutoff in (2, 5, 10)
        )
        write(f"{name:15} recall gained  {gain}\n")


def recall(ranks: Sequence[Sequence[int]], wanted: Sequence[int], cutoff: int) -> Scores:
    return np.array(
        [
            sum(rank <= cutoff for rank in own) / count
            for own, count in zip(ranks, wanted, strict=True)
        ]
    )


# --- Time and space ---------------------------------------------------------------------------


class MemoryEmbedder:
    """Knows the vectors of the texts it was given beforehand, as stored sentence vectors would."""

    def __init__(self, inner: Embedder, texts: Sequence[str]) -> None:
        self.info = inner.info
        self._vectors = dict(zip(texts, inner.embed_passages(texts), strict=True))

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._vectors[text] for text in texts])

    embed_queries = embed_passages


def seconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def measure_time(corpus: Corpus) -> None:
    """Print what re-ranking ten chunks takes, and what storing sentence vectors would cost."""
    rng = random.Random(1)
    question = corpus.queries[0]
    for embedder in (USEEmbedder(), E5Embedder()):
        embedder.embed_queries([question])  # loads the model
        cases = [
            [chunk.content for chunk in rng.sample(corpus.chunks, 10)]
            for _ in range(TIMED_QUESTIONS)
        ]
        stored = MemoryEmbedder(embedder, [question, *unique(map(sentence_texts, corpus.chunks))])
        for name, used in (("on the fly", embedder), ("stored", stored)):
            deadline = Deadline.after(1e9, time.monotonic)
            score = SentenceReranker(used).score
            times = [1e3 * seconds(partial(score, question, c, deadline=deadline)) for c in cases]
            p50, p95 = np.quantile(times, [0.5, 0.95])
            write(f"{embedder.info.name:16} {name:10} p50 {p50:7.1f} ms  p95 {p95:7.1f} ms\n")
        sample = rng.sample(corpus.chunks, 30)
        own = [sentence_texts(chunk) for chunk in sample]
        embed = embedder.embed_passages
        texts = [
            [c.content for c in sample],
            [contextual_text(c.context, c.content) for c in sample],
        ]
        indexing = sum(seconds(partial(embed, both)) for both in texts)
        extra = seconds(partial(embed, unique(own)))
        per_chunk = sum(map(len, own)) / len(own)
        write(
            f"{embedder.info.name:16} storing: {per_chunk:.1f} sentences a chunk,"
            f" {per_chunk * embedder.info.dimension * 2:.0f} bytes as halfvec,"
            f" {extra / indexing:.0%} more embedding time\n"
        )


def main() -> None:
    """Measure and print."""
    if not XQUAD.is_file():
        write(f"skipped: there is no {XQUAD}; XQUAD names the file\n")
        return
    with tempfile.TemporaryDirectory() as temporary, lexeme_counter() as count:
        store = VectorStore(Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
        e5, use = E5Embedder(), USEEmbedder()
        for paragraphs in (1, 5):
            corpus = read_corpus(paragraphs)
            write(f"\n{paragraphs} paragraphs a note: {len(corpus.chunks)} chunks,")
            write(f" {len(corpus.queries)} questions\n")
            search = searcher(corpus, store, count)
            e5_questions = store.get("e5q", e5.embed_queries, corpus.queries)
            use_questions = store.get("useq", use.embed_queries, corpus.queries)
            own = unique(map(sentence_texts, corpus.chunks))
            models = {
                "e5": best_sentences(
                    corpus, store.get("e5p", e5.embed_passages, own), e5_questions
                ),
                "USE": best_sentences(
                    corpus, store.get("useq", use.embed_queries, own), use_questions
                ),
            }
            lists = search.lists(corpus.queries, e5_questions)
            compare_reranking(corpus, lists, models)
            write(f"\n{PAIRS} pairs of questions asked as one\n")
            compare_sub_questions(corpus, search, lists, store)
        write("\nten chunks of five-paragraph notes\n")
        measure_time(corpus)


if __name__ == "__main__":
    main()
