"""The sample's documents: made by their script, read as they should be, asked about truthfully."""

import io
import json
from itertools import pairwise

from rag_resources.core.documents import Page
from rag_resources.core.sections import sections_of
from rag_resources.core.text import content_sha256
from rag_resources.documents.applying import StoredSection, name_sections
from rag_resources.documents.media_types import media_type_of
from rag_resources.documents.readers import reader_of
from rag_resources.settings import SAMPLE
from tests.sample_documents import FOLDER, sample_documents

GOLDEN = SAMPLE / "documents-golden.json"


def pages(name: str) -> list[Page]:
    file = io.BytesIO((FOLDER / name).read_bytes())
    read = list(reader_of(media_type_of(file, name)).read(file))
    assert all(isinstance(page, Page) for page in read)
    return [page for page in read if isinstance(page, Page)]


def test_the_files_are_those_that_the_script_names() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(sample_documents())


def test_every_place_of_the_golden_questions_is_in_its_section() -> None:
    texts = {}
    for path in FOLDER.iterdir():
        sections = list(sections_of(pages(path.name)))
        for name, section in zip(name_sections(path.name, sections, ()), sections, strict=True):
            texts[name] = section.text
    entries = json.loads(GOLDEN.read_text("utf-8"))["entries"]
    places = [place for entry in entries for place in entry["places"]]
    assert len(entries) == len(places) == 20
    of_notes = [place for place in places if "note" in place]
    for place in of_notes:
        assert texts[place["note"]][place["start"] : place["end"]] == place["text"]
    assert {place["note"] for place in of_notes} == set(texts)
    for place in places:
        if "document" in place:
            text = pages(place["document"])[place["page"] - 1].text
            assert text.count(place["text"]) == 1


def test_the_scanned_page_says_that_it_needs_ocr() -> None:
    (page,) = pages("recibo_2025.pdf")
    assert (page.text, page.notices) == ("", ("PAGE_NEEDS_OCR",))


def test_a_section_keeps_its_note_when_others_come_before_it() -> None:
    """By its text first, then by its headings; a new one gets a name that is free."""
    sections = list(sections_of(pages("acta_2024.docx")))
    names = name_sections("acta.docx", sections, ())
    assert names == ["acta.docx#ascensor", "acta.docx#fachada"]
    stored = [
        StoredSection(name, section.heading_path, content_sha256(section.text))
        for name, section in zip(names, sections, strict=True)
    ]
    twice = [sections[1], *sections]
    assert name_sections("acta.docx", twice, stored) == [names[1], names[0], f"{names[1]}-2"]
    edited = [StoredSection(each.external_id, each.heading_path, b"") for each in stored]
    assert name_sections("acta.docx", sections, edited) == names
    assert all(first != second for first, second in pairwise(names))
