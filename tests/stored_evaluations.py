"""Evaluations as a run would have stored them, made of the notes each question found."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.evaluation import QueryOutcome, StoredEvaluation, summarize
from rag_resources.core.evidence import SearchSettings
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.types import RetrievalResult
from rag_resources.database.pool import Connection, Database
from rag_resources.store.contents import count_contents, read_contents
from rag_resources.store.evaluations import EvaluationContext, insert_evaluation


@dataclass(frozen=True)
class Asked:
    """A question by number, its relevant notes and those found, best first.

    Attributes:
        text: Of the question; empty: one that tells its number.
        final: How many of the notes a user gets.
    """

    number: int
    relevant: Sequence[UUID]
    found: Sequence[UUID]
    category: str = "factual"
    error: str | None = None
    difficulty: int = 1
    tags: Sequence[str] = ()
    text: str = ""
    final: int = 5

    @property
    def outcome(self) -> QueryOutcome:
        """The outcome that an evaluation stores for it."""
        entry = GoldenEntry(
            query=self.text or f"¿pregunta {self.number}?",
            relevant_note_ids=tuple(self.relevant),
            expected_answer="sí",
            category=self.category,
            difficulty=self.difficulty,
            tags=tuple(self.tags),
            golden_id=UUID(int=self.number),
        )
        stages = {"search": 5.0 + self.number, "embed": 3.0}
        return QueryOutcome(
            entry,
            tuple(self.found),
            float(10 + self.number),
            stages,
            error=self.error,
            context=tuple(map(_result, self.found[: self.final])),
        )


def _result(note_id: UUID) -> RetrievalResult:
    return RetrievalResult(note_id, note_id, "", "", 1.0, 0, (0, 0), "semantic", 1.0)


def forge(connection: Connection) -> None:
    """Let the rest of a transaction write what triggers refuse, as only a superuser can."""
    connection.execute("SET LOCAL session_replication_role = replica")


def store_evaluation(
    database: Database,
    name: str,
    asked: Sequence[Asked],
    *,
    config: RetrievalConfig | None = None,
    golden: str = "golden",
    digest: str = "digest",
    created_at: datetime | None = None,
    settings: SearchSettings | None = None,
) -> UUID:
    """Store an evaluation of what is there now, made at the given time or now."""
    outcomes = [item.outcome for item in asked]
    config = config or RetrievalConfig()
    with database.transaction() as connection:
        count_contents(connection)
        searched = read_contents(connection, config, settings or SearchSettings())
        context = EvaluationContext(
            name,
            config,
            golden,
            digest,
            (),
            contents=searched.contents,
            measured_at=searched.read_at,
        )
        stored = insert_evaluation(connection, context, summarize(outcomes), outcomes)
        if created_at:
            forge(connection)
            connection.execute(
                "UPDATE evaluation_results SET created_at = %s WHERE id = %s", (created_at, stored)
            )
    return stored


def unmeasured_context(name: str, config: RetrievalConfig) -> EvaluationContext:
    """The context of an evaluation that recorded nothing of what it searched."""
    return EvaluationContext(name, config, "golden", "digest", (), {}, datetime.now(UTC))


def stored(**measured: Any) -> StoredEvaluation:
    """A stored evaluation that found what is given, and nothing else."""
    return StoredEvaluation(**_NOTHING_FOUND | measured)


_NOTHING_FOUND: dict[str, Any] = {
    "evaluation_id": UUID(int=1),
    "configuration": "hybrid",
    "config": {},
    "config_hash": "config",
    "golden_hash": "golden",
    "model": "e5_small",
    "model_digest": "digest",
    "chunking_hashes": (),
    "total_queries": 20,
    "failed_queries": 0,
    "hit_rate_at_1": 0.0,
    "hit_rate_at_3": 0.0,
    "hit_rate_at_5": 0.0,
    "hit_rate_at_10": 0.0,
    "hit_rate_at_10_low": 0.0,
    "hit_rate_at_10_high": 1.0,
    "mrr": 0.0,
    "ndcg_at_10": 0.0,
    "precision_at_10": 0.0,
    "recall_at_10": 0.0,
    "latency_p50_ms": 1.0,
    "latency_p95_ms": 1.0,
    "latency_p99_ms": 1.0,
    "breakdown": {},
    "gate": "fail",
    "created_at": datetime(2025, 1, 1, tzinfo=UTC),
    "served_hit_rate": 0.0,
    "latency_p95_low_ms": 1.0,
    "latency_p95_high_ms": 1.0,
    "contents": {},
    "measured_at": datetime(2025, 1, 1, tzinfo=UTC),
    "latency_queries": 20,
    "late_queries": 0,
}
