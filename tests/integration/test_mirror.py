"""A mirrored source: notes follow the files of a folder."""

import shutil
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.ingestion.deletion import restore_notes
from rag_resources.ingestion.ingest import IngestReport, ingest
from rag_resources.ingestion.mirror import (
    MirrorReport,
    SourceShrankError,
    mirror,
)
from rag_resources.ingestion.source_file import is_conflict_copy
from rag_resources.ingestion.sources import iter_source
from rag_resources.store.notes import find_note

TENANT, SOURCE = "default", "notes"
ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))


def follow(
    database: Database, folder: Path, *, grace_days: int = 7, may_shrink: bool = False
) -> tuple[MirrorReport, IngestReport]:
    """Mirror a folder and ingest it, as `rag ingest --mirror` does."""
    report = mirror(
        database,
        iter_source(folder),
        tenant=TENANT,
        source=SOURCE,
        grace_days=grace_days,
        may_shrink=may_shrink,
    )
    ingested = ingest(
        database, iter_source(folder), tenant=TENANT, source=SOURCE, copies=report.copies
    )
    return report, ingested


def ids(database: Database) -> dict[str, UUID]:
    return {row.external_id: row.id for row in query(database, "SELECT * FROM notes")}


def query(database: Database, statement: Any, *parameters: object) -> list[Any]:
    with database.transaction() as connection:
        return connection.execute(statement, parameters).fetchall()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Eight notes, each with its own text and date."""
    path = tmp_path / "notas"
    path.mkdir()
    for number in range(8):
        (path / f"2025-03-0{number + 1} nota {number}.md").write_text(
            f"# Nota {number}\n\nLa gotera {number} sigue en el tejado.", "utf-8"
        )
    return path


def first(folder: Path) -> Path:
    return folder / "2025-03-01 nota 0.md"


def name_golden(database: Database, note: UUID) -> None:
    query(
        database,
        "INSERT INTO golden_dataset (id, query, normalized_query, relevant_note_ids,"
        " expected_answer, category, difficulty) VALUES (gen_random_uuid(), 'q', 'q',"
        " ARRAY[%s], 'a', 'factual', 1) RETURNING id",
        note,
    )


def test_a_renamed_file_keeps_its_note_with_its_chunks(database: Database, folder: Path) -> None:
    follow(database, folder)
    chunk_window(database, ALWAYS, ChunkingConfig())
    before = ids(database)[first(folder).stem]
    chunks = query(database, "SELECT id FROM chunks WHERE note_id = %s", before)
    (folder / "obra").mkdir()
    shutil.move(first(folder), folder / "obra" / "2025-03-01 tejado.md")

    report, __ = follow(database, folder)

    assert [tuple(own) for own in report.moved] == [(first(folder).stem, "obra/2025-03-01 tejado")]
    assert ids(database)["obra/2025-03-01 tejado"] == before
    assert query(database, "SELECT id FROM chunks WHERE note_id = %s", before) == chunks
    assert (report.missing, len(ids(database))) == ({}, 8)
    with database.transaction() as connection:
        assert find_note(connection, first(folder).stem, tenant=TENANT) == before


def test_the_former_name_is_free_for_another_note(database: Database, folder: Path) -> None:
    follow(database, folder)
    before = ids(database)
    first(folder).rename(folder / "otra.md")
    first(folder).write_text("Un texto nuevo del todo.", "utf-8")
    follow(database, folder)
    assert ids(database)["2025-03-01 nota 0"] == before["2025-03-01 nota 0"]
    assert ids(database)["otra"] not in before.values()

    (folder / "otra.md").rename(folder / "tercera.md")
    follow(database, folder)
    (folder / "otra.md").write_text("La cuarta.", "utf-8")
    __, report = follow(database, folder)
    assert report.rejected_count == 0
    assert len(set(ids(database).values())) == 10


def test_a_missing_note_is_named_then_deleted_and_comes_back_with_its_file(
    database: Database, folder: Path
) -> None:
    follow(database, folder)
    name, text = first(folder).stem, first(folder).read_text("utf-8")
    before = ids(database)
    first(folder).unlink()

    report, __ = follow(database, folder)
    assert list(report.missing) == [name]
    assert ids(database) == before

    first(folder).write_text(text, "utf-8")
    assert follow(database, folder, grace_days=0)[0].deleted == [], "it was never gone"
    assert query(database, "SELECT 1 FROM notes WHERE missing_since IS NOT NULL") == []
    first(folder).unlink()

    report, __ = follow(database, folder, grace_days=0)
    assert (report.deleted, report.missing) == ([name], {})
    assert name not in ids(database)

    first(folder).write_text(text, "utf-8")
    __, ingested = follow(database, folder)
    assert (ids(database), ingested.left_out_count) == (before, 0)


def test_a_note_deleted_with_its_file_can_be_restored_for_another_grace(
    database: Database, folder: Path
) -> None:
    follow(database, folder)
    before = ids(database)
    first(folder).unlink()
    follow(database, folder, grace_days=0)
    restore_notes(database, [first(folder).stem], tenant=TENANT)
    report, __ = follow(database, folder)
    assert (ids(database), list(report.missing)) == (before, [first(folder).stem])


def test_a_folder_that_shrinks_at_once_changes_nothing_until_a_person_agrees(
    database: Database, folder: Path
) -> None:
    follow(database, folder)
    before = ids(database)
    for path in sorted(folder.iterdir())[:3]:
        path.unlink()
    with pytest.raises(SourceShrankError):
        follow(database, folder, grace_days=0)
    assert ids(database) == before
    assert query(database, "SELECT 1 FROM notes WHERE missing_since IS NOT NULL") == []
    report, __ = follow(database, folder, may_shrink=True)
    assert len(report.missing) == 3
    assert len(follow(database, folder)[0].missing) == 3


def test_a_file_that_cannot_be_read_is_not_gone(database: Database, folder: Path) -> None:
    follow(database, folder)
    first(folder).write_text("---\nfecha: ayer\n---\nx", "utf-8")
    report, ingested = follow(database, folder)
    assert (report.missing, ingested.rejected_count, len(ids(database))) == ({}, 1, 8)


def test_identical_copies_are_one_note_until_one_changes(database: Database, folder: Path) -> None:
    copy = folder / "2025-03-01 nota 0 (copia).md"
    shutil.copy(first(folder), copy)
    report, __ = follow(database, folder)
    assert report.copies == {copy.stem: first(folder).stem}
    before = ids(database)
    assert len(before) == 8
    with database.transaction() as connection:
        found = find_note(connection, copy.stem, tenant=TENANT)
    assert found == before[first(folder).stem]

    first(folder).unlink()
    report, __ = follow(database, folder)
    assert ids(database)[copy.stem] == before[first(folder).stem]

    shutil.copy(copy, first(folder))
    follow(database, folder)
    first(folder).write_text("Ya no gotea.", "utf-8")
    follow(database, folder)
    assert len(ids(database)) == 9


def test_a_conflict_copy_with_the_same_text_is_the_same_note(
    database: Database, tmp_path: Path
) -> None:
    """The date in its name is that of the conflict."""
    for name in ("nota", "nota.sync-conflict-20250301-101112-ABCDEFG"):
        (tmp_path / f"{name}.md").write_text("Gotea el tejado.", "utf-8")
    follow(database, tmp_path)
    assert len(ids(database)) == 1


def test_a_rename_from_before_the_mirror_keeps_the_note_that_a_question_names(
    database: Database, folder: Path
) -> None:
    ingest(database, iter_source(folder), tenant=TENANT, source=SOURCE)
    golden = ids(database)[first(folder).stem]
    name_golden(database, golden)
    first(folder).rename(folder / "tejado.md")
    ingest(database, iter_source(folder), tenant=TENANT, source=SOURCE)
    assert len(ids(database)) == 9

    follow(database, folder)
    assert ids(database)["tejado"] == golden
    assert len(ids(database)) == 8


def test_rows_of_a_table_with_one_text_stay_apart(database: Database, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,fecha,content\n1,2025-03-01,Nada\n2,2025-03-02,Nada\n")
    follow(database, tmp_path)
    assert len(ids(database)) == 2


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("a/nota.sync-conflict-20250301-101112-ABCDEFG", True),
        ("nota (Ana's conflicted copy 2025-03-01)", True),
        ("nota (copia en conflicto de Ana 2025-03-01)", True),
        ("nota (conflicted copy 2025-03-01 101112)", True),
        ("nota-DESKTOP-A1B2C3D", True),
        ("nota-pc-sobremesa", False),
        ("el conflicto (copia)", False),
    ],
)
def test_conflict_copies_are_known_by_their_name(name: str, is_one: bool) -> None:
    assert is_conflict_copy(name) is is_one


_FOLLOW = """
import sys
from pathlib import Path
from rag_resources.database.pool import Database
from tests.integration.test_mirror import follow
with Database(sys.argv[1]) as database:
    print("ready", flush=True)
    follow(database, Path(sys.argv[2]))
"""


def test_a_killed_mirror_loses_and_doubles_nothing(
    database: Database, database_url: str, folder: Path
) -> None:
    """Killed at many moments of the work, and done to the end at last."""
    for number in range(600):
        (folder / f"m{number}.md").write_text(f"Apunte {number} de la gotera.", "utf-8")
    follow(database, folder)
    before = set(ids(database).values())
    for turn, delay in enumerate((0.0, 0.05, 0.1, 0.2, 0.3, 0.5)):
        aim = folder / f"carpeta{turn}"
        aim.mkdir()
        for path in sorted(folder.rglob("m*.md"))[: 300 + turn]:
            path.rename(aim / path.name)
        with subprocess.Popen(
            [sys.executable, "-c", _FOLLOW, database_url, str(folder)],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        ) as process:
            assert process.stdout
            assert process.stdout.readline().strip() == b"ready"
            with suppress(subprocess.TimeoutExpired):
                process.wait(delay)
            process.kill()
        assert set(ids(database).values()) == before
    follow(database, folder)
    stored = ids(database)
    assert set(stored.values()) == before
    assert set(stored) == {own.external_id for own in iter_source(folder)}
    assert query(database, "SELECT 1 FROM notes WHERE missing_since IS NOT NULL") == []
