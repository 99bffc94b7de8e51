"""The forms in which answers leave: for the command line, HTTP and the store."""

from dataclasses import replace
from datetime import UTC, datetime

from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import RetrievalResult
from tests.strategies import uuid_number

CHUNK, NOTE = (uuid_number(number) for number in (1, 2))
MOMENT = datetime(2025, 3, 1, 12, tzinfo=UTC)
RESULT = RetrievalResult(
    chunk_id=CHUNK,
    note_id=NOTE,
    content="en medio",
    expanded_content="antes, en medio, después",
    score=0.75,
    chunk_index=4,
    matched_bounds=(7, 15),
    lists=(RankedList.SEMANTIC, RankedList.FULLTEXT),
    original_score=0.5,
    title="Título",
    external_id="diario/1.md",
    created_at=MOMENT,
    rerank_score=0.25,
    start_char=120,
)
BARE = RetrievalResult(CHUNK, NOTE, "a", "a", 1.0, 0, (0, 1), (RankedList.SEMANTIC,), 1.0)


def test_a_note_is_called_by_its_title_else_by_its_name_in_its_source_else_by_its_id() -> None:
    assert RESULT.label == "Título"
    assert replace(RESULT, title=" ").label == "diario/1.md"
    assert BARE.label == str(NOTE)
