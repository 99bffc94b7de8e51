"""What other programs export, as it comes: mail, Evernote, Joplin, Logseq, Notion, chats."""

import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.ingestion.sources import iter_source

MAIL = """From: Ana <ana@ejemplo.es>
To: berta@ejemplo.es
Subject: =?utf-8?q?Reuni=C3=B3n?= del viernes
Date: Mon, 2 Mar 2026 09:05:44 +0100
Message-ID: <uno@ejemplo.es>
MIME-Version: 1.0
Content-Type: {kind}; charset="utf-8"
Content-Transfer-Encoding: 8bit

{body}
"""
EVERNOTE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export3.dtd">
<en-export><note><title>Caldera</title><created>20260302T090544Z</created><tag>casa</tag>
<content><![CDATA[<en-note><div>La revisi&oacute;n es en <b>mayo</b>.</div><ul><li>Llamar</li></ul>
<table><tr><td>Pieza</td><td>Euros</td></tr><tr><td>Codo</td><td>3</td></tr></table></en-note>]]>
</content><resource><data encoding="base64">AAAA</data></resource></note>
<note><title>Vacía</title><content></content></note></en-export>
"""
JOPLIN = "{title}\n\n{body}id: {id}\n{fields}type_: {kind}"


def read(path: Path) -> tuple[list[NoteRecord], list[RejectedRecord]]:
    records = list(iter_source(path))
    return (
        [own for own in records if isinstance(own, NoteRecord)],
        [own for own in records if isinstance(own, RejectedRecord)],
    )


def test_messages_are_notes_with_their_sender_and_date(tmp_path: Path) -> None:
    html = "<p>El <i>grifo</i> gotea.</p><script>x()</script><p>Adi&oacute;s</p>"
    (tmp_path / "a.eml").write_text(MAIL.format(kind="text/plain", body="El grifo gotea."), "utf-8")
    both = MAIL.replace("uno@", "dos@").format(kind="text/html", body=html)
    (tmp_path / "b.mbox").write_text(f"From ana Mon Mar  2 09:05:44 2026\n{both}\n", "utf-8")
    (first, second), rejected = read(tmp_path)
    assert rejected == []
    assert (first.external_id, first.title, first.content) == (
        "uno@ejemplo.es",
        "Reunión del viernes",
        "El grifo gotea.",
    )
    assert first.created_at == datetime(2026, 3, 2, 8, 5, 44, tzinfo=UTC)
    assert first.metadata["from"] == "Ana <ana@ejemplo.es>"
    assert second.content == "El grifo gotea.\n\nAdiós"


def test_notes_of_evernote_have_title_tags_and_date(tmp_path: Path) -> None:
    (tmp_path / "notas.enex").write_text(EVERNOTE, "utf-8")
    (note,), (rejected,) = read(tmp_path)
    assert (note.title, note.tags, note.metadata) == ("Caldera", ("casa",), {"attachments": 1})
    assert note.created_at == datetime(2026, 3, 2, 9, 5, 44, tzinfo=UTC)
    assert note.content == "La revisión es en mayo.\n\n- Llamar\n\nPieza\tEuros\nCodo\t3"
    assert rejected.location == "notas.enex:2"


def test_an_export_with_entities_of_its_own_is_refused(tmp_path: Path) -> None:
    bomb = EVERNOTE.replace('.dtd">', '.dtd" [<!ENTITY a "aaaa">]>')
    (tmp_path / "notas.enex").write_text(bomb, "utf-8")
    assert [own.location for own in read(tmp_path)[1]] == ["notas.enex"]


def test_the_raw_export_of_joplin_is_notes_with_the_names_of_their_tags(tmp_path: Path) -> None:
    note, folder, tag, tagged = (character * 32 for character in "abcd")
    fields_of_note = f"parent_id: {folder}\nuser_created_time: 2026-02-20T10:00:00.000Z\n"
    items = [
        (note, "Trastero", "El candado es el 4471.\n\n", fields_of_note, 1),
        (folder, "Casa", "", "", 2),
        (tag, "llaves", "", "", 5),
    ]
    for key, title, body, fields, kind in items:
        text = JOPLIN.format(title=title, body=body, id=key, fields=fields, kind=kind)
        (tmp_path / f"{key}.md").write_text(text, "utf-8")
    (tmp_path / f"{tagged}.md").write_text(
        f"id: {tagged}\nnote_id: {note}\ntag_id: {tag}\ntype_: 6", "utf-8"
    )
    (read_note,), rejected = read(tmp_path)
    assert rejected == []
    assert (read_note.title, read_note.content, read_note.tags) == (
        "Trastero",
        "El candado es el 4471.",
        ("llaves",),
    )
    assert (read_note.created_at.date().isoformat(), read_note.metadata) == (
        "2026-02-20",
        {"folder": "Casa"},
    )


def test_a_page_of_logseq_has_its_properties_and_a_vault_its_aliases(tmp_path: Path) -> None:
    (tmp_path / "Reforma___Baño.md").write_text(
        "tags:: obra, [[casa]]\nfecha:: [[2026-03-02]]\n\n- El plato es de resina\n", "utf-8"
    )
    (tmp_path / "Íñigo.md").write_text("---\naliases: [El vasco]\n---\nAlbañil.", "utf-8")
    (tmp_path / "Plantillas").mkdir()
    (tmp_path / "Plantillas" / "Diario.md").write_text("# {{date}}", "utf-8")
    (page, person), rejected = read(tmp_path)
    assert rejected == []
    assert (page.title, page.tags) == ("Reforma/Baño", ("obra", "casa"))
    assert page.created_at == datetime(2026, 3, 2, tzinfo=UTC)
    assert page.content.strip() == "- El plato es de resina"
    assert person.tags == ("El vasco",)


def test_an_archive_is_read_as_its_folder(tmp_path: Path) -> None:
    name = "Caldera 0123456789abcdef0123456789abcdef.md"
    with zipfile.ZipFile(tmp_path / "Export.zip", "w") as archive:
        archive.writestr(f"Casa/{name}", "La revisión es en mayo.")
    (tmp_path / "roto.zip").write_bytes(b"PK")
    (note,), (rejected,) = read(tmp_path)
    assert (note.external_id, note.title) == (f"Casa/{name.removesuffix('.md')}", "Caldera")
    assert rejected.location == "roto.zip"


def test_a_page_of_notion_has_its_properties_in_both_forms(tmp_path: Path) -> None:
    (tmp_path / "Viaje 0123456789abcdef0123456789abcdef.md").write_text(
        "# Viaje\n\nCreado: 2 de marzo de 2026 9:00\nTags: norte, tren\nFecha: pronto\n\nA Irún.",
        "utf-8",
    )
    (tmp_path / "Huerto 0123456789abcdef0123456789abcdee.html").write_text(
        "<title>Huerto</title><article><h1>Huerto</h1><table class='properties'><tr><th>Creado</th>"
        "<td><time>@5 de marzo de 2026 10:00</time></td></tr><tr><th>Tags</th><td>riego</td></tr>"
        "</table><h2>Riego</h2><p>Por goteo.</p><p hidden>no</p><pre>a *b*</pre></article>",
        "utf-8",
    )
    (garden, trip), rejected = read(tmp_path)
    assert rejected == []
    assert (trip.title, trip.tags, trip.created_at.date().isoformat()) == (
        "Viaje",
        ("norte", "tren"),
        "2026-03-02",
    )
    assert "A Irún." in trip.content
    assert (garden.title, garden.tags, garden.created_at.date().isoformat()) == (
        "Huerto",
        ("riego",),
        "2026-03-05",
    )
    assert garden.content.endswith("## Riego\n\nPor goteo.\n\n```\na *b*\n```")
    assert garden.metadata["leftOut"] == {"hiddenChars": 2}


def test_a_chat_has_the_name_of_its_archive_and_that_of_joplin_is_read(tmp_path: Path) -> None:
    for sender in ("Rosa", "Blas"):
        with zipfile.ZipFile(tmp_path / f"Chat - {sender}.zip", "w") as archive:
            archive.writestr("_chat.txt", f"[2/3/26, 9:43:12] {sender}: Hola")
            archive.writestr("foto.jpg", b"")
    text = JOPLIN.format(title="Llaves", body="En el cajón.\n\n", id="a" * 32, fields="", kind=1)
    (tmp_path / "a.md").write_text(text, "utf-8")
    with tarfile.open(tmp_path / "casa.jex", "w") as archive:
        archive.add(tmp_path / "a.md", f"{'a' * 32}.md")
    (tmp_path / "a.md").unlink()
    found, rejected = read(tmp_path)
    assert rejected == []
    assert [own.external_id for own in found] == ["Chat - Blas", "Chat - Rosa", "a" * 32]
    assert found[2].title == "Llaves"
