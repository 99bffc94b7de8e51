"""Drafts of golden questions: one for each of some notes, to be filled in by a person.

A draft is an entry with the tag `DRAFT_TAG` and no answer. It is not imported. Once a person has
written its answer it is a question like others, and the tag is dropped.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rag_resources.core.sentences import sentences
from rag_resources.core.text import is_blank
from rag_resources.languages.messages import _

DRAFT_TAG = "borrador"
LEFT_OUT: Any = object()
"""Stands for an entry that is left out before a dataset is read; the others keep their place."""
DRAFTS = 20
"""How many drafts are proposed."""
_DIFFICULTY = 2
_HINT_CHARS = 160


@dataclass(frozen=True, slots=True)
class NoteOpening:
    """The input of a draft: a note's title, and the beginning of its content."""

    external_id: str
    title: str
    opening: str
    created_at: datetime


def first_sentence(text: str, limit: int = _HINT_CHARS) -> str:
    """Return the first sentence of a text that is not a heading, on one line, cut to a length."""
    for span in sentences(text):
        sentence = " ".join(text[span.start : span.end].split())
        if sentence and not sentence.startswith("#"):
            return sentence if len(sentence) <= limit else sentence[: limit - 1] + "…"
    return ""


def choose_notes(notes: Sequence[NoteOpening], count: int) -> list[NoteOpening]:
    """Choose notes for drafts: spread over the months, those with a title first, longest first.

    Args:
        notes: In any order; ties break by external id.
        count: How many at most.
    """
    by_month: dict[str, deque[NoteOpening]] = defaultdict(deque)
    for note in sorted(
        notes, key=lambda note: (not note.title, -len(note.opening), note.external_id)
    ):
        by_month[f"{note.created_at:%Y-%m}"].append(note)
    chosen: list[NoteOpening] = []
    while by_month and len(chosen) < count:
        for month in sorted(by_month):
            chosen.append(by_month[month].popleft())
            if not by_month[month]:
                del by_month[month]
    return chosen[:count]


def draft(note: NoteOpening) -> dict[str, Any]:
    """Return the draft of a question about a note, as a row of a golden file.

    `hint` is for the person who fills it in; imports ignore it.
    """
    sentence = first_sentence(note.opening)
    subject = note.title or sentence
    return {
        "query": str(
            _("What do my notes say about “{subject}”?").format(subject=subject.rstrip(".…"))
        ),
        "relevantNotes": [note.external_id],
        "expectedAnswer": "",
        "category": "factual",
        "difficulty": _DIFFICULTY,
        "tags": [DRAFT_TAG],
        "hint": str(_("The note begins like this: {sentence}").format(sentence=sentence)),
    }


def without_drafts(raw: Any) -> tuple[Any, list[str]]:
    """Leave out the drafts of a golden file, and remove the tag from those that were answered.

    Args:
        raw: The content of the file; anything that is not a list of entries is returned unchanged.

    Returns:
        The content with `LEFT_OUT` in place of drafts, and the questions of these.
    """
    rows = raw.get("entries") if isinstance(raw, Mapping) else raw
    if not isinstance(rows, list):
        return raw, []
    kept: list[Any] = []
    drafts: list[str] = []
    for row in rows:
        if not _is_tagged(row):
            kept.append(row)
        elif is_blank(str(row.get("expectedAnswer") or "")):
            drafts.append(str(row.get("query") or ""))
            kept.append(LEFT_OUT)
        else:
            kept.append({**row, "tags": [tag for tag in row["tags"] if not _is_draft_tag(tag)]})
    return kept, drafts


def _is_tagged(row: Any) -> bool:
    tags = row.get("tags") if isinstance(row, Mapping) else None
    return isinstance(tags, list) and any(map(_is_draft_tag, tags))


def _is_draft_tag(tag: Any) -> bool:
    return isinstance(tag, str) and tag.strip().casefold() == DRAFT_TAG
