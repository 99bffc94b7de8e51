"""Documents in the database: results that know their place, and what goes with a document."""

from uuid import UUID

import pytest

from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig
from rag_resources.core.documents import Page, PageFailure, Section
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.places import NoteSpan
from rag_resources.core.sections import sections_of
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Connection, Database
from rag_resources.documents.workbook import WorkbookReader
from rag_resources.store.document_files import ArrivedFile, Registered, register_file
from rag_resources.store.documents import (
    delete_document,
    write_pages,
    write_sections,
)
from rag_resources.store.index_state import read_index_version
from rag_resources.store.notes import note_id, upsert_notes
from tests.corpus import SMALL, SOURCE, START, Corpus
from tests.office_files import archive, rows, xlsx_parts

WORDS = RetrievalConfig(strategy="fulltext", model="openai_hash")
QUESTION = "¿Cuántas viviendas públicas promete el plan?"

PAGES = {
    1: Page(
        1, "El plan promete construir cien mil viviendas públicas. Serán de alquiler", quality=0.75
    ),
    2: Page(2, "y estarán en manos de los municipios. Otra cosa es el transporte.", quality=0.75),
}
HOUSING = (
    "El plan promete construir cien mil viviendas públicas. Serán de alquiler y estarán en manos "
    "de los municipios."
)
SECTIONS = [
    Section(
        0,
        ("Plan", "Vivienda"),
        HOUSING,
        (
            NoteSpan(0, 72, 1, 0),
            NoteSpan(73, len(HOUSING), 2, 0),
        ),
    ),
    Section(1, ("Plan", "Transporte"), "Otra cosa es el transporte.", (NoteSpan(0, 27, 2, 38),)),
]


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    """A document of two sections on two pages, and a note that is no document's."""
    made = Corpus(database)
    records = [
        *(
            NoteRecord(f"plan/{each.index}", " › ".join(each.heading_path), each.text, START)
            for each in SECTIONS
        ),
        NoteRecord("diario", "", "Hoy he leído el plan de viviendas.", START),
    ]
    with database.transaction() as connection:
        upsert_notes(connection, records, tenant="ana", source=SOURCE)
        document_id = registered(connection, "plan.pdf", "Plan")
        read = [*PAGES.values(), PageFailure(3, "UNREADABLE")]
        write_pages(connection, document_id, read, reader="lines", reader_hash="1")
        write_sections(connection, document_id, sections(), PAGES)
    made.index(SMALL)
    return made


def registered(connection: Connection, address: str, title: str) -> UUID:
    file = ArrivedFile(address, title, "application/pdf", {}, b"\1" * 32, None, None)
    found = register_file(connection, file, tenant="ana", source=SOURCE)
    assert isinstance(found, Registered)
    return found.document_id


def sections() -> dict[UUID, Section]:
    return {note_id("ana", SOURCE, f"plan/{each.index}"): each for each in SECTIONS}


def document(corpus: Corpus) -> UUID:
    found: UUID = corpus.fetch("SELECT id FROM documents")[0].id
    return found


def test_a_passage_of_a_document_says_where_it_stands_and_others_say_nothing(
    corpus: Corpus,
) -> None:
    found = corpus.ask(QUESTION, WORDS, top_k=10).results
    assert {result.place is None for result in found} == {True, False}
    for result in found:
        metadata = result.to_json()["metadata"]
        if result.note_id not in sections():
            assert "place" not in metadata
            continue
        section = sections()[result.note_id]
        assert section.text[result.start_char : result.end_char] == result.content
        assert metadata["place"]["documentId"] == str(document(corpus))
        assert metadata["place"]["headings"] == list(section.heading_path)
        pages = [part["page"] for part in metadata["place"]["parts"]]
        expected = [
            number
            for number in (1, 2)
            if any(
                span.page == number
                and span.start < result.end_char
                and result.start_char < span.end
                for span in section.spans
            )
        ]
        assert pages == expected
        assert metadata["page"] == expected[0]
        assert (metadata["section"], metadata["heading"]) == section.heading_path
        assert metadata["qualityScore"] == 0.75
        assert (metadata["containsTable"], metadata["containsList"]) == (False, False)
        assert "temporalContext" not in metadata
    # The chunks of a document are numbered over its sections, and know their neighbours.
    chunks = corpus.fetch(
        "SELECT c.id FROM chunks AS c INNER JOIN notes AS n ON n.id = c.note_id "
        "WHERE n.document_id IS NOT NULL ORDER BY n.section_index, c.chunk_index"
    )
    ids = [str(row.id) for row in chunks]
    for result in found:
        metadata = result.to_json()["metadata"]
        if result.place:
            at = ids.index(str(result.chunk_id))
            assert metadata["documentChunkId"] == f"plan_p{metadata['page']}_c{at}"
            is_first = result.chunk_index == 0
            is_last = result.chunk_index == metadata["totalChunks"] - 1
            assert metadata["previousChunkId"] == (None if is_first else ids[at - 1])
            assert metadata["nextChunkId"] == (None if is_last else ids[at + 1])


def test_a_workbook_is_found_with_its_cells_and_what_changed(database: Database) -> None:
    """From the file through sections and chunks by structure to the metadata of a result."""
    rows_of_luz = [{"A1": "Mes", "B1": "Gasto de luz"}]
    rows_of_luz += [{f"A{at}": f"{at - 1:02}/2024", f"B{at}": f"={at * 10}"} for at in range(2, 14)]
    file = archive(xlsx_parts(rows(*rows_of_luz)))
    corpus, reader = Corpus(database), WorkbookReader()
    pages = [page for page in reader.read(file) if isinstance(page, Page)]
    found = list(sections_of(pages))
    records = [NoteRecord(f"luz/{each.index}", "Luz", each.text, START) for each in found]
    with database.transaction() as connection:
        upsert_notes(connection, records, tenant="ana", source=SOURCE)
        document_id = registered(connection, "luz.xlsx", "Gastos 2024")
        write_pages(
            connection, document_id, pages, reader=reader.name, reader_hash=reader.reader_hash
        )
        by_note = {note_id("ana", SOURCE, f"luz/{each.index}"): each for each in found}
        write_sections(connection, document_id, by_note, {page.number: page for page in pages})
    corpus.index(ChunkingConfig(strategy="structure", target=64, min=30, max=100, overlap=0))
    results = corpus.ask("¿Cuál fue el gasto de luz de 05/2024?", WORDS, top_k=10).results
    last = next(result for result in results if "06/2024" in result.content)
    assert "Gasto de luz" not in last.content  # It is in the header, which is searched with it.
    metadata = last.to_json()["metadata"]
    assert metadata["documentChunkId"].startswith("gastos-2024_p1_c")
    assert metadata["place"]["parts"][0]["sheet"] == "Hoja 1"
    assert metadata["containsTable"] is True
    (june,) = (each for each in metadata["temporalContext"] if each["date"] == "2024-06-01")
    assert june == {
        "column": "Gasto de luz",
        "date": "2024-06-01",
        "value": "70",
        "cell": "B7",
        "previous": {"date": "2024-05-01", "value": "60", "cell": "B6"},
        "changePercent": 16.67,
    }


def test_an_edited_note_stands_nowhere_until_it_is_written_anew(corpus: Corpus) -> None:
    with corpus.database.transaction() as connection:
        connection.execute(
            "UPDATE notes SET content = content || ' Y más.' WHERE section_index = 0"
        )
        connection.execute("UPDATE notes SET tags = '{a}' WHERE section_index = 1")
    corpus.index(SMALL)
    found = {
        result.note_id: result.place for result in corpus.ask(QUESTION, WORDS, top_k=10).results
    }
    first, second = sections()
    assert found[first] is None
    spans = corpus.fetch("SELECT DISTINCT note_id FROM note_spans")
    assert [row.note_id for row in spans] == [second]


def test_a_section_that_stands_elsewhere_is_refused_and_changes_nothing(corpus: Corpus) -> None:
    before = corpus.fetch("SELECT * FROM note_spans ORDER BY note_id, start_char")
    wrong = {note: Section(s.index, (), s.text, ()) for note, s in sections().items()}
    with pytest.raises(InvalidParameterError), corpus.database.transaction() as connection:
        write_sections(connection, document(corpus), wrong, PAGES)
    assert corpus.fetch("SELECT * FROM note_spans ORDER BY note_id, start_char") == before


def test_a_deleted_document_takes_everything_with_it_but_other_notes(corpus: Corpus) -> None:
    with corpus.database.transaction() as connection:
        delete_document(connection, document(corpus))
    for table in (
        *("documents", "document_addresses", "document_pages", "document_failures", "note_spans"),
        *("chunks AS c WHERE note_id = ANY(%s)", "notes AS n WHERE id = ANY(%s)"),
    ):
        given = (list(sections()),) if "%s" in table else ()
        assert corpus.fetch(f"SELECT FROM {table}", *given) == [], table
    assert len(corpus.fetch("SELECT FROM notes")) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM note_spans",
        "UPDATE note_spans SET cells = 'A1'",
        "UPDATE document_pages SET sheet = '2024'",
        "DELETE FROM document_pages",
    ],
)
def test_a_change_of_places_is_a_new_version_of_the_index(corpus: Corpus, statement: str) -> None:
    """Or a cached answer would show the old place."""
    with corpus.database.transaction() as connection:
        before = read_index_version(connection, "ana").number
        connection.execute(statement)  # type: ignore[call-overload]
        assert read_index_version(connection, "ana").number > before
