"""Sources of notes: every kind of file, every default, every bad record named with its place."""

import csv
import json
import os
import subprocess
import tracemalloc
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.timestamps import parse_timestamp
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.ingestion import records as records_module
from rag_resources.ingestion.sources import iter_source
from rag_resources.ingestion.survey import survey

NOBODY = 65534
MODIFIED = datetime(2025, 6, 7, 8, 9, 10, tzinfo=UTC)


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    os.utime(path, (MODIFIED.timestamp(), MODIFIED.timestamp()))
    return path


def read(path: Path) -> list[NoteRecord | RejectedRecord]:
    return list(iter_source(path))


def notes(path: Path) -> list[NoteRecord]:
    records = read(path)
    assert [record for record in records if isinstance(record, RejectedRecord)] == []
    return [record for record in records if isinstance(record, NoteRecord)]


def note(path: Path) -> NoteRecord:
    (only,) = notes(path)
    return only


def rejection(path: Path, **options: int) -> RejectedRecord:
    (only,) = read(path, **options)
    assert isinstance(only, RejectedRecord)
    return only


def rejections(path: Path) -> dict[str, str]:
    return {
        record.location: record.reason
        for record in read(path)
        if isinstance(record, RejectedRecord)
    }


def jsonl(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


class TestMarkdown:
    def test_a_note_with_front_matter(self, tmp_path: Path) -> None:
        write(
            tmp_path / "2025" / "nota.md",
            '---\nid: mi-id\ntitle: "A: b"\ncreated_at: 2025-03-14T18:30:00+02:00\n'
            "tags: [casa, huerto, casa]\nkind: diario\nrating: 3\n---\nHola.\n\nAdiós.\n",
        )
        assert notes(tmp_path) == [
            NoteRecord(
                external_id="mi-id",
                title="A: b",
                content="Hola.\n\nAdiós.",
                created_at=datetime(2025, 3, 14, 16, 30, tzinfo=UTC),
                tags=("casa", "huerto"),
                metadata={"kind": "diario", "rating": 3},
                location="2025/nota.md",
            )
        ]

    def test_without_front_matter_everything_has_a_default(self, tmp_path: Path) -> None:
        write(tmp_path / "a" / "idea.suelta.txt", "# Una idea #\n\nTexto.")
        assert note(tmp_path) == NoteRecord(
            external_id="a/idea.suelta",
            title="Una idea",
            content="# Una idea #\n\nTexto.",
            created_at=MODIFIED,
            date_source="file_modified",
            location="a/idea.suelta.txt",
        )

    @pytest.mark.parametrize(
        ("text", "content"),
        [
            ("hola\n\n", "hola\n"),
            ("  hola\r\notra\r\n", "  hola\r\notra"),
            ("---\nid: a\n---\n\nhola", "\nhola"),
            ("---\r\nid: a\r\n---\r\nhola\r\n", "hola"),
            ("---\nid: a\n--- \n hola\r", " hola\r"),
            ("\ufeff---\nid: a\n---\nhola", "hola"),
            ("---\nsin cierre\n----\n", "---\nsin cierre\n----"),
            ("---\n---\nhola", "hola"),
            ("---\n# comentario\n---\nhola\n---\n", "hola\n---"),
            ("hola\n---\nid: a\n---\n", "hola\n---\nid: a\n---"),
        ],
    )
    def test_the_content_is_untouched(self, tmp_path: Path, text: str, content: str) -> None:
        assert note(write(tmp_path / "nota.markdown", text)).content == content

    @pytest.mark.parametrize(
        ("content", "title"),
        [
            ("texto\n# Título  \n# Otro", "Título"),
            ("## Segundo nivel\ntexto", "nota"),
            ("#etiqueta\n# C#", "C#"),
            ("```sh\n# comentario\n~~~\n# otro\n```\n# Título", "Título"),
            ("```\n# sin cerrar", "nota"),
            ("# ##\r\n# Título\r\n", "Título"),
            ("    # código\n", "nota"),
        ],
    )
    def test_the_title_is_the_first_heading_or_the_name_of_the_file(
        self, tmp_path: Path, content: str, title: str
    ) -> None:
        assert note(write(tmp_path / "nota.md", content)).title == title

    @pytest.mark.parametrize(
        ("name", "title"),
        [
            ("Óscar Peña.md", "Óscar Peña"),
            ("2025-04-29-apagón_y_vuelta.txt", "apagón y vuelta"),
            ("2025-04-29 Pre-estreno.md", "Pre-estreno"),
            ("2025-04-29.md", ""),
            ("0f8fad5b-d9cb-469f-a165-70867728950e.md", ""),
            ("12.md", ""),
        ],
    )
    def test_a_name_gives_a_title_if_it_has_words(
        self, tmp_path: Path, name: str, title: str
    ) -> None:
        assert note(write(tmp_path / name, "texto")).title == title

    def test_what_yaml_would_change_stays_as_written(self, tmp_path: Path) -> None:
        text = "---\nid: 0123\ntitle: 10:30\ntags: [no, 2025-01-02, ~, 1.10, '']\n---\nx"
        read_note = note(write(tmp_path / "a.md", text))
        assert (read_note.external_id, read_note.title) == ("0123", "10:30")
        assert read_note.tags == ("no", "2025-01-02", "1.10")

    def test_other_fields_become_json_metadata(self, tmp_path: Path) -> None:
        text = (
            "---\nday: 2025-01-02\nat: 2025-01-02 10:00:00\nnever: 2025-02-30\nnothing: ~\n"
            "nan: .nan\nnested: {2025-01-02: [1, yes]}\ncontent: otro\n"
            "1: uno\n---\nx"
        )
        assert note(write(tmp_path / "2025-01-01.md", text)).metadata == {
            "day": "2025-01-02",
            "at": "2025-01-02T10:00:00",
            "never": "2025-02-30",
            "nothing": None,
            "nan": None,
            "nested": {"2025-01-02": [1, True]},
            "content": "otro",
            "1": "uno",
        }

    @pytest.mark.parametrize(
        ("front_matter", "reason"),
        [
            ("a: b\nc: d: e", "línea 3"),
            ('a: b\nc: "\\q"', "línea 3"),
            ("a: !!python/object/apply:os.system [echo]", "línea 2"),
            ("a: !!int x", "no es YAML válido"),
            ("a: " + "[" * 1500, "no es YAML válido"),
            ("solo texto", "campo: valor"),
            ("a: " + "x" * 70_000, "65536 caracteres"),
            ("b: 1\na: &a [*a]", "línea 3"),
            (
                "a: &a [1,1,1,1,1,1,1,1]\n"
                + "".join(
                    f"{new}: &{new} [{', '.join(['*' + old] * 8)}]\n"
                    for old, new in ("ab", "bc", "cd", "de", "ef", "fg")
                ),
                "línea 8",
            ),
            ("id: [1]", "id: «['1']» no es un texto"),
            ("id: " + "ñ" * 600, "id: ocupa más de 1024 bytes"),
            ("title: [1]", "title: «['1']» no es un texto"),
            ("tags: {a: 1}", "tags: se esperaba una lista"),
            ("tags: " + "x" * 600, "tags: la etiqueta"),
            ("created_at: ayer", "created_at: «ayer» no es una fecha"),
            ("created_at: 2025-02-30", "created_at: «2025-02-30» no es una fecha"),
            ('a: "\\ud800"', "a: valor no válido"),
        ],
    )
    def test_bad_front_matter_is_rejected(
        self, tmp_path: Path, front_matter: str, reason: str
    ) -> None:
        found = rejection(write(tmp_path / "mala.md", f"---\n{front_matter}\n---\nhola"))
        assert found.location.partition(":")[0] == "mala.md"
        assert reason in found.reason

    @pytest.mark.parametrize("content", ["", "\n", " \t\r\n \n", "---\nid: a\n---\n  \n", "\0\0"])
    def test_a_blank_note_is_rejected(self, tmp_path: Path, content: str) -> None:
        found = rejection(write(tmp_path / "blanca.md", content))
        assert found == RejectedRecord("blanca.md", "content: no puede estar vacío")

    def test_nul_characters_are_removed(self, tmp_path: Path) -> None:
        text = '---\nid: "a\\0b"\nother: "\\0"\n---\nho\0la\x01\0'
        read_note = note(write(tmp_path / "a.md", text))
        assert (read_note.external_id, read_note.content) == ("ab", "hola\x01")
        assert read_note.metadata["other"] == ""

    def test_a_text_of_another_encoding_is_read(self, tmp_path: Path) -> None:
        text = "El acta dice: mañana, 30 € – “sí”"
        assert note(write(tmp_path / "a.md", text.encode("cp1252"))).content == text

    def test_pictures_and_drawings_as_letters_are_left_out_and_told(self, tmp_path: Path) -> None:
        data = b64encode(bytes(range(256)) * 20).decode()
        drawing = f"```compressed-json\n{data}\n```"
        text = f"Uno.\n\n![foto](data:image/png;base64,{data})\n\nDos.\n\n{data}\n\n{drawing}\n"
        read_note = note(write(tmp_path / "a.md", text))
        assert read_note.content.split() == ["Uno.", "![foto]()", "Dos."]
        assert set(read_note.metadata["leftOut"]) == {"pictureChars", "drawingChars", "dataChars"}

    def test_tags_in_the_text_are_tags_and_comments_are_told_as_left_out(
        self, tmp_path: Path
    ) -> None:
        read_note = note(write(tmp_path / "a.md", "---\ntags: [a]\n---\n#b #a %%no%% ![[c]]"))
        assert (read_note.tags, read_note.metadata["leftOut"]) == (("a", "b"), {"commentChars": 6})

    def test_a_note_over_the_limit_is_rejected(self, tmp_path: Path) -> None:
        path = write(tmp_path / "grande.md", "a" * (20 * 1024**2 + 1))
        assert "más de 20 MB" in rejection(path).reason
        assert len(note(write(tmp_path / "justa.txt", "a" * 20 * 1024**2)).content) == 20 * 1024**2


class TestCreatedAt:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2025-03-14", "2025-03-14T00:00:00+00:00"),
            ("20250314", "2025-03-14T00:00:00+00:00"),
            ("2025/3/4", "2025-03-04T00:00:00+00:00"),
            ("2025-03-14T18:30", "2025-03-14T18:30:00+00:00"),
            (" 2025-03-14 9:30:05 ", "2025-03-14T09:30:05+00:00"),
            ("2025-03-14T18:30:00Z", "2025-03-14T18:30:00+00:00"),
            ("2025-03-14t18:30:00z", "2025-03-14T18:30:00+00:00"),
            ("2025-03-14 18:30:00 UTC", "2025-03-14T18:30:00+00:00"),
            ("2025-03-14T00:30:00+01:00", "2025-03-13T23:30:00+00:00"),
            ("2025-03-14 18:30:00 +1", "2025-03-14T17:30:00+00:00"),
            ("2025-03-14T18:30:00-0530", "2025-03-15T00:00:00+00:00"),
            ("2025-03-14T18:30:00.123456789Z", "2025-03-14T18:30:00.123456+00:00"),
            ("2025-03-14T18:30:00,5", "2025-03-14T18:30:00.500000+00:00"),
            ("2999-01-01", "2999-01-01T00:00:00+00:00"),
            ("1850-01-01", "1850-01-01T00:00:00+00:00"),
        ],
    )
    def test_many_spellings(self, tmp_path: Path, text: str, expected: str) -> None:
        path = write(tmp_path / "a.md", f"---\ncreated_at: {text}\n---\nx")
        read_note = note(path)
        assert read_note.created_at.isoformat() == expected
        assert read_note.created_at.tzinfo is UTC
        assert read_note.date_source == "field"

    @pytest.mark.parametrize(
        "text",
        ["", "14/03/2025", "2025", "2025-13-01", "2025-1/2", "1741977000", "2025-03-14T25:00"],
    )
    def test_anything_else_is_no_date(self, text: str) -> None:
        assert parse_timestamp(text) is None

    @pytest.mark.parametrize(
        "field",
        [
            'created: "[[2025-03-14]]"',
            "Fecha de creación: 14 de marzo de 2025",
            "created: [2025-03-14]",
            "date:\n  created: March 14, 2025",
            "fecha: 14/03/2025",
        ],
    )
    def test_a_field_states_it_in_many_forms(self, tmp_path: Path, field: str) -> None:
        read_note = note(write(tmp_path / "a.md", f"---\n{field}\n---\nx"))
        assert read_note.created_at == datetime(2025, 3, 14, tzinfo=UTC)
        assert read_note.date_source == "field"

    @pytest.mark.parametrize(
        ("name", "text", "origin"),
        [
            ("2025-03-14-paseo.md", "x", "file_name"),
            ("2025_03_14.md", "El 3/4/2024.", "file_name"),
            ("14-03-2025.md", "x", "file_name"),
            ("14 marzo 2025.md", "x", "file_name"),
            ("acta 20250314.md", "x", "file_name"),
            ("a/2025-03-14 paseo.md", "x", "file_name"),
            ("2025-03-14.md", "---\nid: otro\n---\nx", "file_name"),
            ("a.md", "---\nid: 2025-03-14-b\ncreated_at:\n---\nx", "file_name"),
            ("2025-03-14/nota.md", "x", "folder"),
            ("diario/2025/03/14.md", "x", "folder"),
            ("2025/03-marzo/14 viernes.md", "x", "folder"),
            ("a.md", "# Acta del 14 de marzo de 2025\n\nEl 3/4/2024.", "title"),
            ("a.md", "Apunte de 14-03-2025: nada.\n\nEl 3/4/2024.", "text"),
            ("a.txt", "14/3/25, 9:43 - Berta: El grifo gotea\n15/3/25, 9:50 - Ana: No", "text"),
        ],
    )
    def test_a_missing_date_is_found_and_its_origin_told(
        self, tmp_path: Path, name: str, text: str, origin: str
    ) -> None:
        write(tmp_path / name, text)
        read_note = note(tmp_path)
        assert read_note.created_at == datetime(2025, 3, 14, tzinfo=UTC)
        assert read_note.date_source == origin

    def test_else_from_the_first_commit_also_of_a_renamed_file(self, tmp_path: Path) -> None:
        def git(*command: str, day: str = "2025-03-14") -> None:
            moment = f"{day}T10:00:00+01:00"
            subprocess.run(
                ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *command],
                cwd=tmp_path,
                check=True,
                capture_output=True,
                env={**os.environ, "GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment},
            )

        write(tmp_path / "notas" / "añejo.md", "El queso se cura en la bodega.")
        git("init")
        git("add", ".")
        git("commit", "-m", "a")
        git("mv", "notas/añejo.md", "notas/nuevo.md")
        git("commit", "-m", "b", day="2025-05-01")
        read_note = note(tmp_path / "notas")
        assert read_note.created_at == datetime(2025, 3, 14, 9, tzinfo=UTC)
        assert read_note.date_source == "git"

    @pytest.mark.parametrize("name", ["nota.md", "2025-03-141.md", "2025-02-30.md"])
    def test_else_from_the_file(self, tmp_path: Path, name: str) -> None:
        read_note = note(write(tmp_path / name, "x"))
        assert read_note.created_at == MODIFIED
        assert read_note.date_source == "file_modified"


class TestJsonl:
    def test_fields_and_lines(self, tmp_path: Path) -> None:
        rows = jsonl(
            {
                "id": 7,
                "title": " Uno \n dos ",
                "text": "Hola.\r\n",
                "created_at": "2025-03-14",
                "tags": ["a", 1],
                "lang": "es",
                "empty": None,
            },
            {"external_id": "b", "body": "Adiós", "content": " ", "createdAt": "2025-03-15"},
        )
        path = write(tmp_path / "notas.jsonl", "\ufeff\n" + rows)
        assert notes(path) == [
            NoteRecord(
                "7",
                "Uno dos",
                "Hola.\r\n",
                datetime(2025, 3, 14, tzinfo=UTC),
                ("a", "1"),
                {"lang": "es", "empty": None},
                "notas.jsonl:2",
            ),
            NoteRecord(
                "b",
                "",
                "Adiós",
                datetime(2025, 3, 15, tzinfo=UTC),
                (),
                {"content": " "},
                "notas.jsonl:3",
            ),
        ]

    def test_bad_lines_are_named_and_the_others_go_in(self, tmp_path: Path) -> None:
        lines = [
            b'{"id": "a", "text": "bien"}',
            b'{"id": "b", "text": }',
            b"[1, 2]",
            b'{"id": "c"}',
            b'{"id": "d", "text": " "}',
            b'{"id": "e", "text": 5}',
            b'{"id": "f", "text": "ma\xf1ana"}}',
            b'{"id": "g", "text": "medio \\ud83d"}',
            b'{"id": "h", "text": "x", "meta": {"\\udc00": 1}}',
            b'{"id": "i", "text": "x", "created_at": 1741977000}',
            b'{"id": true, "text": "x"}',
            b'{"id": 1.5, "text": "x"}',
            b'{"id": "a", "text": "repetido"}',
            b"[" * 100_000,
            b'{"id": ' + b"1" * 5000 + b"}",
            b'{"id": "z", "text": "bien", "score": NaN, "huge": 1e999}',
        ]
        path = write(tmp_path / "n.jsonl", b"\n".join(lines))
        reasons = {
            2: "línea 2, columna 21",
            3: "no es un objeto JSON",
            4: "falta este campo",
            5: "text: no puede estar vacío",
            6: "text: «5» no es un texto",
            7: "línea 7, columna",
            8: "text: valor no válido",
            9: "meta: valor no válido",
            10: "created_at: «1741977000» no es una fecha",
            11: "id: «true» no es un texto",
            12: "id: «1.5» no es un texto",
            13: "id: «a» ya está en n.jsonl:1",
            14: "línea 14",
            15: "línea 15",
        }
        found = rejections(path)
        assert list(found) == [f"n.jsonl:{line}" for line in reasons]
        for line, reason in reasons.items():
            assert reason in found[f"n.jsonl:{line}"]
        good = [record for record in read(path) if isinstance(record, NoteRecord)]
        assert [record.external_id for record in good] == ["a", "z"]
        assert (good[1].metadata["score"], good[1].metadata["huge"]) == (None, None)

    def test_nul_characters_raw_and_escaped(self, tmp_path: Path) -> None:
        path = write(tmp_path / "n.jsonl", b'{"text": "a\x00b\\u0000c", "o": {"\\u0000k": "v"}}')
        read_note = note(path)
        assert read_note.content == "abc"
        assert read_note.metadata["o"] == {"k": "v"}

    def test_a_line_over_the_limit_is_passed_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(records_module, "MAX_NOTE_BYTES", 1000)
        path = write(tmp_path / "n.jsonl", jsonl({"text": "a" * 5000}, {"text": "b"}))
        records = read(path)
        assert [(type(own), own.location) for own in records] == [
            (RejectedRecord, "n.jsonl:1"),
            (NoteRecord, "n.jsonl:2"),
        ]

    def test_a_file_is_not_held_in_memory(self, tmp_path: Path) -> None:
        path = tmp_path / "n.jsonl"
        with path.open("w") as file:
            file.writelines(jsonl({"id": i, "text": f"{i} " * 2000}) for i in range(3_000))
        assert path.stat().st_size > 20 * 1024**2
        tracemalloc.start()
        try:
            assert sum(1 for _ in iter_source(path)) == 3_000
            assert tracemalloc.get_traced_memory()[1] < 4 * 1024**2
        finally:
            tracemalloc.stop()


class TestCsv:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_comma_and_semicolon(self, tmp_path: Path, delimiter: str) -> None:
        path = tmp_path / "notas.csv"
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerow(["id", " content ", "created_at", "tags", "ánimo", ""])
            writer.writerow(["1", "a, b; «c»\r\nd", "2025-03-14 10:00", "x, y", "3", "ignorada"])
            writer.writerow(["2", "e", "2025-03-15", "", "", ""])
        assert notes(path) == [
            NoteRecord(
                "1",
                "",
                "a, b; «c»\r\nd",
                datetime(2025, 3, 14, 10, tzinfo=UTC),
                ("x", "y"),
                {"ánimo": "3"},
                "notas.csv:2",
            ),
            NoteRecord("2", "", "e", datetime(2025, 3, 15, tzinfo=UTC), (), {}, "notas.csv:4"),
        ]

    def test_a_line_over_the_limit_is_rejected(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(records_module, "MAX_NOTE_BYTES", 1000)
        path = write(tmp_path / "n.csv", "text\r\n" + "a" * 5000 + "\r\nb\r\n")
        records = read(path)
        assert [record.location for record in records] == ["n.csv:2", "n.csv:3"]
        assert isinstance(records[0], RejectedRecord)


class TestFolders:
    def test_a_walk_in_order_without_what_is_hidden_or_foreign(self, tmp_path: Path) -> None:
        for name in ("b.md", "a/z.TXT", "a/b/c.md", "a/a.md", ".oculta.md", ".git/x.md", "x.pdf"):
            write(tmp_path / name, name)
        write(tmp_path / "c.jsonl", jsonl({"id": "fila", "text": "x"}))
        assert [n.external_id for n in notes(tmp_path)] == ["a/a", "a/b/c", "a/z", "b", "fila"]

    def test_what_the_ignore_file_names_is_not_read(self, tmp_path: Path) -> None:
        """As in `.gitignore`; also in the survey of the folder."""
        for name in ("a.md", "viejo/b.md", "viejo/c.md", "d.tmp.md", "x/viejo.md"):
            write(tmp_path / name, name)
        write(tmp_path / ".ragignore", "# lo viejo\nviejo/\n!viejo/c.md\n*.tmp.md\n")
        assert [n.external_id for n in notes(tmp_path)] == ["a", "x/viejo"]
        assert survey(tmp_path).notes == 2

    def test_the_same_id_in_two_files_rejects_the_second(self, tmp_path: Path) -> None:
        write(tmp_path / "a.md", "uno")
        write(tmp_path / "a.txt", "dos")
        write(tmp_path / "b.md", "---\nid: a\n---\ntres")
        assert rejections(tmp_path) == {
            "a.txt": "id: «a» ya está en a.md. Cambia uno de los dos.",
            "b.md": "id: «a» ya está en a.md. Cambia uno de los dos.",
        }

    def test_links_are_followed_once_and_loops_not(self, tmp_path: Path) -> None:
        root = tmp_path / "notas"
        write(root / "z" / "real.md", "x")
        write(tmp_path / "fuera" / "otra.md", "y")
        (root / "a").symlink_to(root / "z")
        (root / "b.md").symlink_to(root / "z" / "real.md")
        (root / "z" / "arriba").symlink_to(root)
        (root / "yo.md").symlink_to(root / "yo.md")
        found = read(root)
        assert [n.external_id for n in found if isinstance(n, NoteRecord)] == ["z/real"]
        assert len(found) == 1

    def test_a_link_out_of_the_folder_is_named_and_not_followed(self, tmp_path: Path) -> None:
        """To a folder or a file of notes; one to a file of another kind says nothing."""
        root = tmp_path / "notas"
        write(root / "dentro.md", "x")
        write(tmp_path / "fuera" / "otra.md", "y")
        write(tmp_path / "fuera" / "foto.png", "z")
        (root / "carpeta").symlink_to(tmp_path / "fuera")
        (root / "nota.md").symlink_to(tmp_path / "fuera" / "otra.md")
        (root / "foto.png").symlink_to(tmp_path / "fuera" / "foto.png")
        assert list(rejections(root)) == ["carpeta", "nota.md"]
        assert [n.external_id for n in read(root) if isinstance(n, NoteRecord)] == ["dentro"]

    def test_what_is_no_file_is_rejected(self, tmp_path: Path) -> None:
        (tmp_path / "roto.md").symlink_to(tmp_path / "no-existe")
        os.mkfifo(tmp_path / "tubo.md")
        write(tmp_path / "z.md", "x")
        records = read(tmp_path)
        assert [record.location for record in records] == ["roto.md", "tubo.md", "z.md"]
        assert isinstance(records[1], RejectedRecord)
        assert "No se puede leer" in records[1].reason

    def test_a_name_that_is_not_utf8_is_rejected(self, tmp_path: Path) -> None:
        try:
            (tmp_path / os.fsdecode(b"ma\xf1ana.md")).write_text("x")
        except OSError:
            pytest.skip("the file system takes no such name")
        found = rejection(tmp_path)
        assert "UTF-8" in found.reason
        assert found.location == "ma\\udcf1ana.md"


class TestInvalidSources:
    @pytest.mark.parametrize("name", ["no-existe", "nota.md/dentro", "n\0ul"])
    def test_a_missing_path(self, tmp_path: Path, name: str) -> None:
        write(tmp_path / "nota.md", "x")
        with pytest.raises(InvalidSourceError, match=r"no se puede leer|Comprueba"):
            iter_source(tmp_path / name)

    def test_a_file_of_another_kind(self, tmp_path: Path) -> None:
        path = write(tmp_path / "nota.pdf", "x")
        with pytest.raises(InvalidSourceError, match=r"\.md .*\.jsonl .*\.csv"):
            iter_source(path)

    def test_no_permission(self, tmp_path: Path) -> None:
        write(tmp_path / "carpeta" / "nota.md", "x")
        write(tmp_path / "nota.md", "x")
        for name in ("carpeta", "nota.md"):
            (tmp_path / name).chmod(0)
        try:
            as_nobody(tmp_path, self.check_no_permission)
        finally:
            (tmp_path / "carpeta").chmod(0o700)

    @staticmethod
    def check_no_permission(path: Path) -> None:
        for name in ("carpeta", "nota.md", "carpeta/nota.md"):
            with pytest.raises(InvalidSourceError, match="no se puede leer"):
                iter_source(path / name)
        assert set(rejections(path)) == {"carpeta", "nota.md"}


def as_nobody(path: Path, check: Any) -> None:
    """Call `check(path)` without the rights of root, for which no permission is missing."""
    if os.geteuid() != 0:
        check(path)
        return
    modes = {folder: folder.stat().st_mode for folder in (path, *path.parents)}
    for folder, mode in modes.items():
        folder.chmod(mode | 0o055)
    os.seteuid(NOBODY)
    try:
        check(path)
    finally:
        os.seteuid(0)
        for folder, mode in modes.items():
            folder.chmod(mode)


def test_the_source_is_a_stream(tmp_path: Path) -> None:
    """The first note is given before the second file is looked at."""
    write(tmp_path / "a.md", "uno")
    write(tmp_path / "b.md", "dos")
    stream: Iterator[NoteRecord | RejectedRecord] = iter_source(tmp_path)
    assert isinstance(next(stream), NoteRecord)
    (tmp_path / "b.md").unlink()
    assert isinstance(next(stream), RejectedRecord)
