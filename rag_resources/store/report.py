"""Data for the evaluation report, besides `store.evaluations` and `store.comparison`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rag_resources.core.evaluation import Percentiles, StoredEvaluation
from rag_resources.core.judging import JudgeInfo, JudgeSummary
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.evaluations import stored_evaluation

OPENING_CHARS = 180
"""Length of a note's opening, enough to recognise the note."""


@dataclass(frozen=True, slots=True)
class EvaluationDetail:
    """The figures of an evaluation that gates do not need.

    Attributes:
        stages: Latency percentiles by stage, in no particular order.
        breakdown: As in `Summary`.
        judgements: Without the answers; None if nothing was judged.
    """

    stages: Mapping[str, Percentiles]
    breakdown: Mapping[str, Mapping[str, float]]
    judgements: JudgeSummary | None


@dataclass(frozen=True, slots=True)
class NoteOpening:
    """A note's name, title and opening, on one line."""

    name: str
    title: str
    opening: str


def evaluation_details(
    connection: Connection, evaluation_ids: Collection[UUID]
) -> dict[UUID, EvaluationDetail]:
    """Return the details of the given evaluations, by id."""
    rows = queries().evaluation_details(connection, evaluation_ids=list(evaluation_ids))
    return {
        row.id: EvaluationDetail(
            {name: Percentiles(**values) for name, values in row.stage_latencies.items()},
            row.breakdown,
            _judgements(row),
        )
        for row in rows
    }


def history_of(
    connection: Connection, configurations: Collection[str], *, limit: int
) -> list[StoredEvaluation]:
    """Return the newest evaluations of the given configurations, oldest first."""
    rows = queries().history_of_configurations(
        connection, configurations=list(configurations), row_limit=limit
    )
    return [stored_evaluation(row) for row in rows]


def note_openings(connection: Connection, note_ids: Collection[UUID]) -> dict[UUID, NoteOpening]:
    """Return the openings of the given notes; deleted and expired ones are left out."""
    # One extra character shows whether the note is longer.
    rows = queries().note_openings(connection, note_ids=list(note_ids), max_chars=OPENING_CHARS + 1)
    return {row.id: NoteOpening(row.name, row.title, _opening(row.opening)) for row in rows}


def _opening(content: str) -> str:
    words = " ".join(content[:OPENING_CHARS].split())
    if len(content) <= OPENING_CHARS:
        return words
    return f"{words.rpartition(' ')[0] or words}…"


def _judgements(row: Any) -> JudgeSummary | None:
    if row.judge is None:
        return None
    return JudgeSummary(
        info=JudgeInfo(row.judge, row.judge_model, row.judge_version, row.answerer),
        judged=row.judged_queries,
        failures=row.judge_failures,
        faithfulness=row.faithfulness,
        answer_relevance=row.answer_relevance,
        answers={},
    )
