"""Matches the sections of a document to its stored notes, so that unchanged ones stay the same."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rag_resources.core.documents import Section
from rag_resources.core.text import content_sha256

_SLUG_CHARS = 60
_BREAK = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class StoredSection:
    """A section as it is stored: external id of its note, headings, hash of its content."""

    external_id: str
    heading_path: tuple[str, ...]
    content_sha256: bytes


def name_sections(
    address: str, sections: Sequence[Section], stored: Sequence[StoredSection]
) -> list[str]:
    """Return the external id of each section's note.

    A section with the same text as a stored one is the same note. Any other section under the same
    headings as a stored one is that note, edited. The rest are new: `address#heading-2` for the
    second section under that heading.

    Args:
        address: The document's address; part of new ids.
        sections: In the order of the document.
        stored: In the order of the document; each is used for one section at most.
    """
    by_text: dict[object, list[str]] = defaultdict(list)
    by_headings: dict[object, list[str]] = defaultdict(list)
    for each in stored:
        by_text[each.heading_path, each.content_sha256].append(each.external_id)
    names: list[str | None] = [None] * len(sections)
    for place, section in enumerate(sections):
        if same := by_text[section.heading_path, content_sha256(section.text)]:
            names[place] = same.pop(0)
    used = {name for name in names if name}
    for each in stored:
        if each.external_id not in used:
            by_headings[each.heading_path].append(each.external_id)
    taken = {each.external_id for each in stored}
    named = []
    for section, name in zip(sections, names, strict=True):
        edited = by_headings[section.heading_path]
        named.append(name or (edited.pop(0) if edited else _new(address, section, taken)))
    return named


def _new(address: str, section: Section, taken: set[str]) -> str:
    base = f"{address}#{_slug(section.heading_path)}"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name


def _slug(headings: Sequence[str]) -> str:
    """Return the last heading as a slug of safe letters; `texto` if there is no heading."""
    plain = unicodedata.normalize("NFKD", headings[-1] if headings else "").casefold()
    letters = "".join(each for each in plain if not unicodedata.combining(each))
    return _BREAK.sub("-", letters)[:_SLUG_CHARS].strip("-") or "texto"
