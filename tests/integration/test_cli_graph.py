"""`rag graph …` against a real database: what it shows, and what it keeps of people's decisions."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.messages import Message
from rag_resources.database.pool import Database
from tests.command_line import Outcome, call_rag, isolate
from tests.corpus import Draft
from tests.graph_corpus import GraphCorpus

LONG = ChunkingConfig(max_tokens=512, overlap_tokens=0, min_tokens=0)
CLOSED = "Ayer vi a Amparo Castelló. Cerró la tienda porque Castelló lo pidió."
CALLED = "Luego llamó Castelló, así que fui con Bernat a Orriols el 3 de marzo de 2025."
Rag = Callable[..., Outcome]


@pytest.fixture
def corpus(database: Database) -> GraphCorpus:
    made = GraphCorpus(database)
    made.fill(
        [
            Draft(CLOSED, "Tienda", tenant="default"),
            Draft(CALLED, tags=("cal-viva",), tenant="default"),
            Draft("En casa de Bernat no había nadie.", tenant="default"),
            Draft("Vimos con Rosa que el techo cedió porque llovía mucho.", tenant="luis"),
        ],
        LONG,
    )
    made.read()
    return made


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    corpus: GraphCorpus,
    database_url: str,
) -> Rag:
    """Call `rag graph` on the database of the corpus."""
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url)

    def call(*arguments: str | Path, stdin: str = "") -> Outcome:
        return call_rag(monkeypatch, capsys, "graph", *arguments, stdin=stdin)

    return call


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("castello", "name"),
        ("cal-viva", "tag"),
        ("Cal Viva", "tag"),
        ("3 de marzo de 2025", "date"),
        ("2025-03-03", "date"),
        ("Cerró la tienda", "event"),
    ],
)
def test_show_finds_names_tags_dates_and_events_as_people_write_them(
    rag: Rag, name: str, kind: str
) -> None:
    found = rag("show", name, "--json")
    assert found.code == 0
    assert found.json["kind"] == kind
    word = {"name": "nombre", "tag": "etiqueta", "date": "fecha", "event": "hecho"}[kind]
    assert f"({word}, {found.json['id']})" in rag("show", name).out
    assert rag("show", found.json["id"], "--json").json == found.json


def test_show_tells_what_surrounds_an_entity_and_draws_it(rag: Rag, tmp_path: Path) -> None:
    picture = tmp_path / "castello.png"
    shown = rag("show", "Castelló", "--png", picture)
    assert shown.code == 0
    assert "Castelló lo pidió → CAUSES → Cerró la tienda" in shown.out
    assert "Bernat" in shown.out
    assert "Tienda" in shown.out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert rag("show", "Castelló", "--png", tmp_path / "no" / "x.png").code == 2
    for unknown in ("Nadie", "Rosa"):
        assert "ninguna entidad" in rag("show", unknown).err


def test_status_tells_size_months_and_precision(rag: Rag) -> None:
    found = rag("status", "--json").json
    (month,) = found["months"]
    assert (month["notes"], month["statements"], found["statements"]) == (3, 2, 2)
    assert (found["judged"], found["right"]) == (0, 0)
    shown = rag("status").out
    assert Message.GRAPH_UNJUDGED in shown
    assert month["month"][:7] in shown


def test_review_keeps_what_a_person_says_until_the_end_of_the_input(
    rag: Rag, corpus: GraphCorpus
) -> None:
    assert len(rag("review", "--json").json) == 2
    skipped = rag("review", stdin="\n")
    assert skipped.code == 0
    assert Message.GRAPH_UNJUDGED in skipped.out
    said = rag("review", stdin="s\nn\n")
    assert "1 de 2 causas revisadas" in said.out
    assert CLOSED in said.out
    found = corpus.fetch("SELECT is_right FROM graph_reviews ORDER BY is_right")
    assert [row.is_right for row in found] == [False, True]
    assert rag("review", "--json").json == []


def test_aliases_are_suggested_decided_and_undone(rag: Rag) -> None:
    def suggested() -> set[tuple[str, str]]:
        return {(item["alias"], item["entity"]) for item in rag("aliases", "--json").json}

    pair = ("Castelló", "Amparo Castelló")
    assert pair in suggested()
    assert "Amparo Castelló" in rag("aliases").out
    assert rag("alias", *pair).code == 0
    assert pair not in suggested()
    assert len(rag("show", pair[1], "--json").json["notes"]) == 2
    assert rag("alias", *reversed(pair)).code == 2
    assert Message.GRAPH_UNDONE in rag("alias", *pair, "--undo").out
    assert Message.GRAPH_NOTHING_TO_UNDO in rag("alias", *pair, "--undo").out
    assert pair in suggested()
    assert rag("alias", *pair, "--no").code == 0
    assert pair not in suggested()


def test_links_join_events_of_two_notes_and_are_undone(rag: Rag) -> None:
    ends = ("Cerró la tienda", "llamó Castelló")
    assert rag("link", *ends, "--relation", "TRIGGERS").code == 0
    assert Message.GRAPH_BY_PERSON in rag("show", ends[0]).out
    assert rag("link", *ends, "--relation", "quizá").code == 2
    assert rag("link", ends[0], "Bernat").code == 2
    assert Message.GRAPH_UNDONE in rag("link", *ends, "--undo").out
    assert Message.GRAPH_BY_PERSON not in rag("show", ends[0]).out
    assert Message.GRAPH_NOTHING_TO_UNDO in rag("link", *ends, "--undo").out


def test_an_expired_note_is_shown_nowhere(rag: Rag, corpus: GraphCorpus) -> None:
    """Its text is deleted by the purge only, and nobody reads it until then."""
    rag("link", "Cerró la tienda", "llamó Castelló")
    with corpus.database.transaction() as connection:
        connection.execute(
            "UPDATE notes SET expires_at = now() - interval '1 minute' WHERE content = %s",
            (CALLED,),
        )
    castello = rag("show", "Castelló", "--json").json
    assert [item["title"] for item in castello["notes"]] == ["Tienda"]
    assert "llamó" not in str(castello)
    assert "Bernat" not in str(castello)
    closed = rag("show", "Cerró la tienda").out
    assert "llamó" not in closed
    assert "llamó" not in rag("review", "--json").out
    assert "Orriols" not in rag("aliases", "--json").out
    assert rag("status", "--json").json["names"] == 3
