"""A retrieval pipeline over real notes and HTTP; tests can break each of its parts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from structlog.testing import capture_logs

from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig, Strategy
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import NoteRecord, RetrievalResponse, TimeWindow
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from rag_resources.providers.ollama import OllamaEmbedder
from rag_resources.resilience.breakers import Breakers, CircuitBreaker
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.models import register_model
from tests.corpus import KINDS
from tests.ollama_server import OllamaServer

MODEL = "ollama_nomic_embed_text"
NOTE_MODEL = "ollama_bge_m3"
MODELS = {"nomic-embed-text:latest": 64, "bge-m3:latest": 48}
QUERY = "¿Qué pasó con el ascensor de la escalera?"
SECRET = "clave-secreta"
RESET_S = 60.0
FAILURES = 5
PATIENT_MS = 60_000.0
"""A deadline that a busy machine does not reach."""

_ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
_START = datetime(2025, 1, 1, tzinfo=UTC)
_CHUNKING = ChunkingConfig(max_tokens=32, overlap_tokens=0, min_tokens=0)
_NOTES = """
El ascensor de la escalera no funciona desde el apagón. La junta votó arreglarlo en mayo, con prisa.
Vera tiene fiebre. El pediatra dice que es un virus y que beba mucha agua. Mañana la vuelve a ver.
La organización del barrio se reunió en Orriols. Se habló del ascensor y de la plaza nueva, sin más.
Lola hizo mermelada de naranja amarga. Llevaba mucho azúcar y poca agua, y duró una semana entera.
La tortuga se ha roto una pata. La veterinaria la ha vendado y dice que tardará un mes en curarse.
Ensayamos el réquiem de Fauré en la iglesia. La mezzosoprano cantó muy bien y el órgano, regular.
El padre se cayó en la escalera. Lo llevaron a urgencias, a La Fe, y volvió a casa por la noche.
La gotera del baño sigue ahí. Hay que llamar otra vez al fontanero, que no contesta desde el lunes.
""".strip().splitlines()
_UNCHUNKED = "El técnico del ascensor de la escalera vino el jueves y pidió una pieza de recambio."


def config(strategy: Strategy = Strategy.HYBRID, **changes: Any) -> RetrievalConfig:
    """A configuration of the stand's model."""
    return RetrievalConfig(model=MODEL, strategy=strategy, **changes)


SEMANTIC = config(Strategy.SEMANTIC)
FULLTEXT = config(Strategy.FULLTEXT)
HYBRID = config()


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Asked:
    """A response, and the log records of its failed stages."""

    response: RetrievalResponse
    failures: list[dict[str, Any]]

    @property
    def errors(self) -> dict[str, str]:
        """The class of the error of each failed stage."""
        return {failure["stage"]: failure["error"] for failure in self.failures}


class Stand:
    """Notes with their chunks and vectors, one of them not chunked yet, and pipelines over them.

    Attributes:
        ollama: Serves `MODEL`, of the chunks, and `NOTE_MODEL`, of the whole notes.
        clock: Of the circuit breakers.
    """

    def __init__(self, database: Database, url: str, ollama: OllamaServer) -> None:
        self.database = database
        self.url = url
        self.ollama = ollama
        self.clock = Clock()
        self._closing: list[OllamaEmbedder] = []
        self.embedders = {MODEL: self.embedder(), NOTE_MODEL: self.embedder("bge-m3")}
        self._ingest(_NOTES, first=0)
        chunk_window(database, _ALWAYS, _CHUNKING)
        self._ingest([_UNCHUNKED], first=len(_NOTES))
        self.embed()
        with database.transaction() as connection:
            refresh_statistics(connection)
        self.pipeline = self.new_pipeline()

    def close(self) -> None:
        """Close the connections to the models."""
        for embedder in self._closing:
            embedder.close()

    def embedder(self, model: str = "nomic-embed-text") -> OllamaEmbedder:
        """A new embedder, as in a new process: it knows nothing about the server yet."""
        address = self.ollama.host.replace("://", f"://rag:{SECRET}@")
        embedder = OllamaEmbedder(model, host=address)
        self._closing.append(embedder)
        return embedder

    def embed(self) -> None:
        """Make the vectors that are missing."""
        with self.database.transaction() as connection:
            for name, embedder in self.embedders.items():
                kinds = KINDS if name == MODEL else {VectorKind.NOTE}
                register_model(connection, embedder.info, kinds)
        embed_chunks(self.database, self.embedders[MODEL], _ALWAYS)
        for embedder in self.embedders.values():
            embed_notes(self.database, embedder, _ALWAYS)

    def new_pipeline(self, database: Database | None = None, **parts: Any) -> RetrievalPipeline:
        """A pipeline with breakers of its own, which reset after `RESET_S` of the stand's clock."""
        parts.setdefault(
            "breakers",
            Breakers(lambda name: CircuitBreaker(name, reset_s=RESET_S, clock=self.clock)),
        )
        return RetrievalPipeline(
            database or self.database,
            embedder=self.embedders.__getitem__,
            tenant="ana",
            **parts,
        )

    def ask(
        self,
        config: RetrievalConfig = HYBRID,
        pipeline: RetrievalPipeline | None = None,
        query: str = QUERY,
        deadline_ms: float = PATIENT_MS,
    ) -> Asked:
        """Retrieve, and check what must hold of every answer: its log, and that nothing leaks."""
        with capture_logs() as logs:
            response = (pipeline or self.pipeline).retrieve(query, config, deadline_ms=deadline_ms)
        failures = [record for record in logs if record["event"] == "retrieval_degraded"]
        assert [failure["stage"] for failure in failures] == list(response.degraded)
        for failure in failures:
            assert failure["log_level"] == "warning"
            assert failure["config_hash"] == config.config_hash
            assert failure["component"]
            assert failure["elapsed_ms"] > 0
        self._assert_nothing_leaks(response, logs, query)
        return Asked(response, failures)

    def whole(self, config: RetrievalConfig = HYBRID, **options: Any) -> RetrievalResponse:
        """Retrieve, and check that nothing is missing."""
        response = self.ask(config, **options).response
        assert (response.degraded, response.messages, response.error) == ((), (), None)
        assert response.results
        return response

    @contextmanager
    def locked(self, tables: str) -> Iterator[None]:
        """Have another session lock tables against every other use, as `ALTER TABLE` does."""
        with psycopg.connect(self.url) as other:
            other.execute(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE".encode())
            yield
            other.rollback()

    @contextmanager
    def gone(self, table: str) -> Iterator[None]:
        """Let a table be missing for a while."""
        self.execute(f"ALTER TABLE {table} RENAME TO hidden")
        yield
        self.execute(f"ALTER TABLE hidden RENAME TO {table}")

    def execute(self, statement: str) -> None:
        """Run a statement in a session of its own."""
        with psycopg.connect(self.url, autocommit=True) as other:
            other.execute(statement.encode())

    def _ingest(self, texts: list[str], *, first: int) -> None:
        records = [
            NoteRecord(str(number), f"Nota {number}", text, _START + timedelta(days=number))
            for number, text in enumerate(texts, start=first)
        ]
        ingest(self.database, records, tenant="ana", source="diario")

    def _assert_nothing_leaks(
        self, response: RetrievalResponse, logs: list[Any], query: str
    ) -> None:
        password = str(conninfo_to_dict(self.url)["password"])
        told = " ".join([*response.messages, response.error or ""])
        recorded = repr([record for record in logs if record["log_level"] != "debug"])
        for secret in (SECRET, password, query):
            assert secret not in told
            assert secret not in recorded
        for trace in ("SELECT", "Traceback", "psycopg", "/usr", "/tmp", ".py", "Error:"):
            assert trace not in told
            assert trace == "psycopg" or trace not in recorded


MISSING_SEMANTIC = (_("Semantic search is unavailable, using keyword search"),)
MISSING_FULLTEXT = (_("Keyword search is unavailable, using semantic search"),)
LATE_SEMANTIC = (
    _("Semantic search is unavailable, using keyword search"),
    _("Partial search completed (time limit exceeded)"),
)
