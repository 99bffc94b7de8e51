"""Evaluations, questions, golden entries and notes as pandas data frames, and frames as files.

pandas is imported when a frame is made: that takes almost a second.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from rag_resources.core.answer_metrics import ANSWER_METRICS
from rag_resources.core.attribution import EvaluatedQuestion
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.golden import GoldenEntry

if TYPE_CHECKING:
    import pandas as pd

CSV, PARQUET = ".csv", ".parquet"
TEXT, WHOLE, NUMBER, LIST = "str", "Int64", "float64", "object"
TIME = "datetime64[us, UTC]"
"""Dtypes. A missing text is NaN, a missing whole number NA, a missing time NaT."""

_HIT_RATES = tuple(f"hit_rate_at_{cutoff}" for cutoff in (1, 3, 5, 10))
_MEANS = ("mrr", "precision_at_10", "recall_at_10", "ndcg_at_10", "served_hit_rate")

EVALUATIONS: Mapping[str, str] = {
    **dict.fromkeys(("evaluation_id", "configuration", "config_hash", "golden_hash"), TEXT),
    **dict.fromkeys(("model", "model_digest", "gate"), TEXT),
    **dict.fromkeys(("created_at", "measured_at"), TIME),
    **dict.fromkeys(("total_queries", "failed_queries", "degraded_queries"), WHOLE),
    **dict.fromkeys((*_HIT_RATES, "hit_rate_at_10_low", "hit_rate_at_10_high", *_MEANS), NUMBER),
    **dict.fromkeys((f"latency_p{share}_ms" for share in (50, 95, 99)), NUMBER),
    **dict.fromkeys(("faithfulness", "answer_relevance", *ANSWER_METRICS), NUMBER),
}
"""Columns and dtypes of stored evaluations, a row each."""

QUESTIONS: Mapping[str, str] = {
    **dict.fromkeys(("evaluation_id", "configuration", "golden_id", "query", "category"), TEXT),
    **dict.fromkeys(("difficulty", "rank"), WHOLE),
    **dict.fromkeys((*_HIT_RATES, *_MEANS, *ANSWER_METRICS, "latency_ms"), NUMBER),
    "error": TEXT,
    **dict.fromkeys(("relevant_note_ids", "retrieved_note_ids"), LIST),
}
"""Columns and dtypes of the questions of evaluations, a row each."""

GOLDEN: Mapping[str, str] = {
    **dict.fromkeys(("id", "query", "expected_answer", "category"), TEXT),
    "difficulty": WHOLE,
    **dict.fromkeys(("relevant_note_ids", "tags", "places"), LIST),
    **dict.fromkeys(("created_at", "updated_at"), TIME),
}
"""Columns and dtypes of golden questions, a row each; the names of a file in snake_case."""

NOTES: Mapping[str, str] = {
    **dict.fromkeys(("note_id", "source", "external_id", "title"), TEXT),
    **dict.fromkeys(("created_at", "updated_at", "expires_at"), TIME),
    "chunked": "bool",
    **dict.fromkeys(("tags", "metadata"), LIST),
}
"""Columns and dtypes of stored notes, a row each."""


def data_frame(rows: Iterable[Mapping[str, Any]], dtypes: Mapping[str, str]) -> "pd.DataFrame":
    """Return rows as a frame with these columns and dtypes; what a row lacks is missing."""
    import pandas as pd

    found = list(rows)
    return pd.DataFrame(
        {
            name: pd.Series([row.get(name) for row in found], dtype=dtype)
            for name, dtype in dtypes.items()
        }
    )


def evaluation_frame(evaluations: Iterable[StoredEvaluation]) -> "pd.DataFrame":
    """Return evaluations as `EVALUATIONS`, in the order given."""
    return data_frame(
        (
            {name: getattr(each, name, None) for name in EVALUATIONS}
            | {"evaluation_id": str(each.evaluation_id)}
            | {
                name: estimate.mean
                for name, estimate in (each.answers.metrics if each.answers else {}).items()
            }
            for each in evaluations
        ),
        EVALUATIONS,
    )


def question_frame(
    asked: Iterable[tuple[StoredEvaluation, Iterable[EvaluatedQuestion]]],
) -> "pd.DataFrame":
    """Return the questions of evaluations as `QUESTIONS`, in the order given."""
    return data_frame(
        (
            {
                "evaluation_id": str(made.evaluation_id),
                "configuration": made.configuration,
                **{name: getattr(each, name) for name in ("query", "category", "difficulty")},
                **{name: getattr(each, name) for name in ("rank", "latency_ms", "error")},
                "golden_id": str(each.golden_id),
                **each.metrics,
                **(each.answer_metrics or {}),
                "relevant_note_ids": [str(note) for note in each.relevant],
                "retrieved_note_ids": [str(note) for note in each.retrieved],
            }
            for made, questions in asked
            for each in questions
        ),
        QUESTIONS,
    )


def golden_frame(entries: Iterable[GoldenEntry]) -> "pd.DataFrame":
    """Return golden questions as `GOLDEN`, in the order given."""
    return data_frame(
        (
            {
                "id": entry.golden_id and str(entry.golden_id),
                **{name: getattr(entry, name) for name in GOLDEN if name not in ("id", "places")},
                "relevant_note_ids": [str(note) for note in entry.relevant_note_ids],
                "tags": list(entry.tags),
                "places": [place.to_json() for place in entry.places],
            }
            for entry in entries
        ),
        GOLDEN,
    )


def note_frame(notes: Iterable[Any]) -> "pd.DataFrame":
    """Return `StoredNote`s as `NOTES`, in the order given."""
    return data_frame(
        (
            {field.name: getattr(note, field.name) for field in dataclasses.fields(note)}
            | {"note_id": str(note.note_id), "tags": list(note.tags)}
            for note in notes
        ),
        NOTES,
    )


_LISTS = ("relevantNoteIds", "relevantNotes", "tags", "places")
_FEW = "difficulty"


def entries_of_frame(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    """Return the rows of a frame as a file of golden questions has them; gaps are left out.

    Args:
        frame: Its columns are the keys of such a file, or those of `GOLDEN`. A list may be text:
            JSON as a CSV file holds it, or its only element.
    """
    rows = json.loads(frame.to_json(orient="records", date_format="iso", date_unit="us"))
    return [
        {
            key: _element(key, value)
            for name, value in row.items()
            if value not in (None, "") and (key := _key(name))
        }
        for row in rows
    ]


def _key(name: str) -> str:
    first, *others = name.strip().split("_")
    return first + "".join(part.title() for part in others)


def _element(key: str, value: Any) -> Any:
    if key in _LISTS and isinstance(value, str):
        try:
            return json.loads(value) if value.lstrip().startswith("[") else [value]
        except ValueError:
            return [value]
    if key == _FEW:
        with suppress(ValueError, TypeError):
            return int(value) if int(value) == float(value) else value
    return value


def frame_bytes(frame: "pd.DataFrame", name: str) -> bytes:
    """Return a frame as a file's content: Parquet for `*.parquet`, else CSV with lists as JSON."""
    if name.lower().endswith(PARQUET):
        return bytes(frame.to_parquet(index=False))
    lists = {
        column: frame[column].map(partial(json.dumps, ensure_ascii=False, default=str))
        for column, dtype in frame.dtypes.items()
        if dtype == LIST
    }
    return str(frame.assign(**lists).to_csv(index=False, lineterminator="\n")).encode()
