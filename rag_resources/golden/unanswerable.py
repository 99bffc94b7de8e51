"""Reads questions that no note answers. Golden questions, which need a note, are `golden.files`."""

from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from pydantic import BaseModel, Field, ValidationError

from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.messages import Message
from rag_resources.core.text import normalize_query
from rag_resources.core.validation import describe_problems
from rag_resources.golden.files import load_json

CATEGORY = "unanswerable"


class _Row(BaseModel):
    query: str = Field(min_length=1, pattern=r"\S")
    tags: tuple[str, ...] = ()


class _Rows(BaseModel):
    entries: tuple[_Row, ...]


def read_unanswerable(path: Path, *, tag: str | None = None) -> list[GoldenEntry]:
    """Return the questions of a file as entries without relevant notes; repeats count once.

    Args:
        path: JSON: `{"entries": [{"query": "…", "tags": ["…"]}]}`; other fields are ignored.
        tag: Only those with this tag; None takes all.

    Raises:
        InvalidSourceError: The file cannot be read.
        InvalidGoldenDatasetError: It is not of that form; every problem is named.
    """
    raw = load_json(path)
    try:
        rows = _Rows.model_validate(raw).entries
    except ValidationError as error:
        headline = Message.UNANSWERABLE_INVALID.format(origin=path)
        raise InvalidGoldenDatasetError(headline, describe_problems(error)) from error
    found = {normalize_query(row.query): row for row in rows if tag is None or tag in row.tags}
    return [
        GoldenEntry(
            query=row.query,
            relevant_note_ids=(),
            expected_answer="",
            category=CATEGORY,
            difficulty=1,
            tags=row.tags,
            golden_id=uuid5(NAMESPACE_URL, normalized),
        )
        for normalized, row in found.items()
    ]
