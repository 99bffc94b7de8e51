"""A folder of documents on its way into notes: what arrives, what is read, what is kept."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.path_pattern import PathPattern
from rag_resources.database.pool import Database
from rag_resources.documents import readers
from rag_resources.documents.applying import ApplyReport, apply_window
from rag_resources.documents.arrival import ArrivalReport, arrive
from rag_resources.documents.deletion import delete_document, restore_document
from rag_resources.documents.extracting import ExtractReport, extract_window
from rag_resources.documents.folder import folder_files
from rag_resources.documents.review import Concern, Decision, list_reviews, review_document
from rag_resources.documents.verification import picture_of_page, verify_document
from rag_resources.files import LocalFiles
from rag_resources.ingestion.deletion import delete_notes
from rag_resources.store.document_files import Arrival, lock_documents
from rag_resources.store.document_list import (
    DocumentDetails,
    DocumentSummary,
    count_missing,
    find_document,
    list_documents,
    read_details,
    refresh_statuses,
)
from tests.corpus import ALWAYS, SMALL, Corpus
from tests.pdf_files import PROSE, draw_lines, pdf_of, wrapped
from tests.waiting import wait_until

HOUSING = "El plan promete construir cien mil viviendas públicas de alquiler en cuatro años."
TRANSPORT = "Otra cosa es el transporte: habrá trenes cada media hora entre las dos ciudades."


@dataclass
class Stand:
    """A folder, a place for copies and a database."""

    database: Database
    folder: Path
    files: LocalFiles
    corpus: Corpus
    config: ExtractionConfig = field(default_factory=ExtractionConfig)
    pattern: PathPattern | None = None

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file that differs from the one before in size or time."""
        path = self.folder / name
        before = path.stat().st_mtime_ns if path.exists() else 0
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if path.stat().st_mtime_ns == before:
            os.utime(path, ns=(before, before + 1))

    def arrive(self) -> ArrivalReport:
        """Register the folder."""
        found = folder_files(self.folder, pattern=self.pattern)
        return arrive(
            self.database, self.files, found, tenant="ana", source="docs", config=self.config
        )

    def extract(self) -> ExtractReport:
        """Read what has arrived."""
        return extract_window(self.database, self.files, ALWAYS, self.config, tenant="ana")

    def apply(self) -> ApplyReport:
        """Write what was read."""
        return apply_window(self.database, ALWAYS, tenant="ana")

    def run(self) -> tuple[ArrivalReport, ExtractReport, ApplyReport]:
        """All of it."""
        return self.arrive(), self.extract(), self.apply()

    def find(self, name: str) -> DocumentSummary:
        """A document with its present status."""
        with self.database.transaction() as connection:
            refresh_statuses(connection)
            return find_document(connection, name, tenant="ana")

    def details(self, name: str) -> DocumentDetails:
        """The parts of a document."""
        document = self.find(name)
        with self.database.transaction() as connection:
            return read_details(connection, document.document_id)

    def documents(self) -> list[DocumentSummary]:
        """All documents."""
        with self.database.transaction() as connection:
            return list_documents(connection, tenant="ana")[0]

    def copies(self) -> list[Path]:
        """The copies of files that are kept."""
        return [path for path in self.folder.parent.glob("files/**/*") if path.is_file()]

    def notes(self) -> list[Any]:
        """All notes."""
        return self.corpus.fetch(
            "SELECT id, external_id, title, content, metadata, document_id, section_index, "
            "chunked_at, updated_at FROM notes ORDER BY external_id"
        )


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def stand(database: Database, tmp_path: Path) -> Stand:
    (tmp_path / "docs").mkdir()
    return Stand(database, tmp_path / "docs", LocalFiles(tmp_path / "files"), Corpus(database))


def test_a_folder_becomes_notes_that_know_their_place_and_their_metadata(stand: Stand) -> None:
    stand.pattern = PathPattern("{partido}_{año}_{candidata}_{title}.PDF")
    pdf = pdf_of(lambda canvas: draw_lines(canvas, wrapped(PROSE, 80), 60, 80))
    stand.write("verde_2024_Ana_Plan verde.pdf", pdf.getvalue())
    stand.write("sub/acta.txt", f"{HOUSING}\f{TRANSPORT}")
    stand.write("foto.png", b"\x89PNG")
    stand.write(".oculto.txt", HOUSING)
    arrived, extracted, applied = stand.run()
    assert arrived.counts == {Arrival.NEW: 2}
    assert (arrived.rejected, extracted.failures) == ([], [])
    assert (extracted.documents, extracted.pages, applied.documents) == (2, 3, 2)
    plan = stand.find("Plan verde")
    assert (plan.status, plan.page_count, plan.media_type) == ("chunking", 1, "application/pdf")
    stand.corpus.index(SMALL)
    assert stand.find("Plan verde").status == "completed"
    words = RetrievalConfig(strategy="fulltext", model="openai_hash")
    filters = RetrievalFilters(metadata={"partido": "verde", "año": 2024, "candidata": "Ana"})
    found = stand.corpus.ask("autobús barrios trenes", words, filters=filters).results
    assert found
    for result in found:
        assert result.place
        assert result.place.document_id == plan.document_id
        assert [place.page for place in result.place.places] == [1]
        assert result.place.places[0].boxes
    for document in stand.documents():
        verified = verify_document(stand.database, stand.files, document.document_id, stand.config)
        assert verified.passages == document.chunks > 0
        assert (verified.share, verified.unverified) == (1, [])
    picture = picture_of_page(stand.database, stand.files, plan.document_id, 1, stand.config)
    assert picture.startswith(b"\x89PNG")
    again = stand.run()
    assert again[0].counts == {Arrival.UNCHANGED: 2}
    assert (again[1].documents, again[2].documents) == (0, 0)


def test_the_same_file_and_the_same_text_are_one_document_with_more_addresses(
    stand: Stand,
) -> None:
    stand.write("a.txt", HOUSING)
    stand.run()
    stand.write("b.txt", HOUSING)
    stand.write("c.md", f"{HOUSING}\n\n")
    arrived, extracted, applied = stand.run()
    assert arrived.counts == {Arrival.UNCHANGED: 1, Arrival.KNOWN: 1, Arrival.NEW: 1}
    assert (extracted.documents, applied.merged) == (1, ["c"])
    (document,) = stand.documents()
    assert [each["address"] for each in document.addresses] == ["a.txt", "b.txt", "c.md"]
    assert len(stand.notes()) == 1
    assert stand.run()[0].counts == {Arrival.UNCHANGED: 3}


def test_a_changed_file_keeps_the_notes_of_what_did_not_change(stand: Stand) -> None:
    stand.write("plan.txt", f"{HOUSING}\f{TRANSPORT}")
    stand.run()
    stand.corpus.index(SMALL)
    before = stand.notes()
    stand.write("plan.txt", f"{HOUSING}\f{TRANSPORT}")
    assert stand.run()[0].counts == {Arrival.UNCHANGED: 1}
    assert stand.notes() == before
    stand.write("plan.txt", "Ya no hay plan.")
    arrived, extracted, _ = stand.run()
    assert arrived.counts == {Arrival.CHANGED: 1}
    assert extracted.held == []  # Another file may say less.
    (note,) = stand.notes()
    assert (note.id, note.content) == (before[0].id, "Ya no hay plan.")
    diff = stand.details("plan.txt").extractions[0].diff
    assert diff
    assert (diff.pages_before, diff.pages_after, diff.passages_kept) == (2, 1, 0)


def test_a_file_that_disappears_is_reported_and_its_document_stays(stand: Stand) -> None:
    stand.write("plan.txt", HOUSING)
    stand.run()
    (stand.folder / "plan.txt").unlink()
    assert stand.arrive().missing == ["plan.txt"]
    since = stand.find("plan.txt").addresses[0]["missingSince"]
    assert since
    assert stand.arrive().missing == ["plan.txt"], "as long as it is missing"
    assert stand.find("plan.txt").addresses[0]["missingSince"] == since
    assert stand.find("plan.txt").is_missing
    with stand.database.transaction() as connection:
        assert count_missing(connection) == 1
    stand.write("plan.txt", HOUSING)
    assert stand.run()[0].counts[Arrival.UNCHANGED] == 1
    assert stand.find("plan.txt").addresses[0]["missingSince"] is None


def test_one_bad_file_costs_no_other_and_says_why(stand: Stand) -> None:
    (stand.folder.parent / "fuera.txt").write_text("No es de la carpeta.", "utf-8")
    (stand.folder / "enlace.txt").symlink_to("../fuera.txt")
    stand.write("bueno.txt", HOUSING)
    stand.write("dañado.pdf", b"%PDF-1.7\nnada")
    stand.write("no_es.pdf", "Not found")
    stand.write("largo.txt", "a\fb\fc\fd")
    stand.write("blanco.md", " \n")
    stand.write("foto.jpg", "nada")
    stand.config = ExtractionConfig(pages=3)
    arrived, extracted, applied = stand.run()
    assert {each.location for each in arrived.rejected} == {"enlace.txt"}
    assert {title for title, _ in extracted.failures} == {"dañado", "largo", "blanco"}
    assert applied.documents == 3
    assert {each.title: each.status for each in stand.documents()} == {
        "bueno": "chunking",
        "dañado": "failed",
        "no es": "failed",
        "largo": "chunking",
        "blanco": "chunking",
    }
    (failure,) = stand.details("largo.txt").failures
    assert "más de 3 páginas" in failure.reason
    assert "extensión .pdf" in stand.details("no_es.pdf").failures[0].reason
    assert len(stand.details("largo.txt").pages) == 3
    stand.corpus.index(SMALL)
    assert stand.find("largo.txt").status == stand.find("blanco.md").status == "partial"
    assert "está vacío" in stand.details("blanco.md").failures[0].reason
    assert stand.run()[1].documents == 0  # A failure is not tried again for nothing.


def test_a_reader_that_loses_words_replaces_nothing_until_a_person_accepts(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand.write("plan.txt", f"{HOUSING}\f{TRANSPORT}")
    stand.run()
    stand.corpus.index(SMALL)
    before = stand.notes()
    reader = readers.reader_of("text/plain")
    monkeypatch.setattr(reader, "reader_hash", "2")
    assert stand.run()[1].held == []  # It reads the same: nothing is held, nothing changes.
    assert stand.notes() == before
    chunks = stand.corpus.fetch("SELECT id FROM chunks ORDER BY id")
    monkeypatch.setattr(reader, "reader_hash", "3")
    stand.config = ExtractionConfig(pages=1)
    _, extracted, applied = stand.run()
    ((title, diff),) = extracted.held
    assert (title, diff.pages_after, applied.documents) == ("plan", 1, 0)
    assert 0.3 < diff.lost_words < 0.7
    assert diff.passages_lost > 0
    assert stand.notes() == before
    assert stand.corpus.fetch("SELECT id FROM chunks ORDER BY id") == chunks
    (review,) = list_reviews(stand.database, tenant="ana")
    assert (review.concern, review.diff) == (Concern.HELD, diff)
    held = stand.find("plan.txt")
    document_id = held.document_id
    review_document(stand.database, document_id, Decision.DROP, tenant="ana")
    assert (held.status, stand.find("plan.txt").status) == ("partial", "completed")
    assert list_reviews(stand.database, tenant="ana") == []
    assert stand.run()[1].documents == 0
    monkeypatch.setattr(reader, "reader_hash", "4")
    stand.run()
    review_document(stand.database, document_id, Decision.ACCEPT, tenant="ana")
    assert [note.content for note in stand.notes()] == [HOUSING]


def test_a_deleted_document_leaves_no_text_and_does_not_come_back(stand: Stand) -> None:
    stand.write("plan.txt", HOUSING)
    stand.write("otro.txt", TRANSPORT)
    stand.run()
    stand.corpus.index(SMALL)
    document_id = stand.find("plan.txt").document_id
    assert delete_document(stand.database, stand.files, document_id, tenant="ana") == 1
    assert [note.content for note in stand.notes()] == [TRANSPORT]
    tables = stand.corpus.fetch(
        "SELECT c.table_name AS name FROM information_schema.tables AS c "
        "WHERE c.table_schema = 'public' AND c.table_type = 'BASE TABLE'"
    )
    for table in tables:
        rows = stand.corpus.fetch(f'SELECT to_jsonb(t)::text AS row FROM "{table.name}" AS t')
        assert not [row for row in rows if "viviendas" in row.row], table.name
    for path in stand.folder.parent.glob("files/**/*"):
        assert path.is_dir() or b"viviendas" not in path.read_bytes()
    (left_out,) = stand.run()[0].left_out
    assert left_out.location == "plan.txt"
    stand.write("copia.md", HOUSING + "\n")  # Another file with the same text.
    stand.run()
    assert [note.content for note in stand.notes()] == [TRANSPORT]
    arrived, read, _ = stand.run()
    assert [each.location for each in arrived.left_out] == ["copia.md", "plan.txt"]
    assert read.documents == 0
    for path in stand.folder.parent.glob("files/**/*"):
        assert path.is_dir() or b"viviendas" not in path.read_bytes()
    assert restore_document(stand.database, "plan.txt", tenant="ana")
    stand.run()
    assert len(stand.notes()) == 2
    assert [each["address"] for each in stand.find("plan.txt").addresses] == [
        "copia.md",
        "plan.txt",
    ]


def test_a_deletion_waits_for_a_file_of_its_document_that_is_being_registered(
    stand: Stand,
) -> None:
    stand.write("plan.txt", HOUSING)
    stand.run()
    document_id = stand.find("plan.txt").document_id
    with ThreadPoolExecutor(1) as pool, stand.database.transaction() as connection:
        lock_documents(connection, tenant="ana")
        deletion = pool.submit(
            delete_document, stand.database, stand.files, document_id, tenant="ana"
        )
        waiting = (
            "SELECT FROM pg_locks AS l INNER JOIN pg_database AS d ON d.oid = l.database "
            "WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted"
        )
        wait_until(lambda: deletion.done() or stand.corpus.fetch(waiting))
        assert not deletion.done()
        assert len(stand.copies()) == 1
    assert deletion.result() == 1
    assert stand.copies() == []


def test_a_section_that_a_person_deleted_stays_away(stand: Stand) -> None:
    stand.write("plan.txt", HOUSING)
    stand.run()
    delete_notes(stand.database, [stand.notes()[0].id], reason="")
    stand.write("plan.txt", HOUSING + "  ")
    stand.run()
    assert stand.notes() == []


def test_new_metadata_reach_the_notes_without_reading_anything(stand: Stand) -> None:
    stand.write("plan.txt", HOUSING)
    stand.run()
    stand.pattern = PathPattern("{partido}.txt")
    _, extracted, _ = stand.run()
    assert extracted.documents == 0
    (note,) = stand.notes()
    assert note.metadata == {"partido": "plan", "file": "plan.txt", "section": ""}


def test_a_page_without_text_waits_for_a_person(stand: Stand) -> None:
    def picture(canvas: Any) -> None:
        canvas.rect(50, 50, 300, 300, fill=1)

    blank = "la página en blanco no espera a nadie"
    stand.write("escaneado.pdf", pdf_of(picture, lambda canvas: None).getvalue())
    stand.run()
    assert stand.find("escaneado.pdf").status == "partial"
    assert stand.find("escaneado.pdf").needs_ocr == 1, blank
    (review,) = list_reviews(stand.database, tenant="ana")
    assert (review.concern, review.page) == (Concern.NEEDS_OCR, 1), blank
    review_document(
        stand.database, review.document.document_id, Decision.DROP, tenant="ana", page=1
    )
    assert list_reviews(stand.database, tenant="ana") == []
    assert stand.find("escaneado.pdf").status == "completed"
