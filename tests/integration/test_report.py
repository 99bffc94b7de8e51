"""The evaluation report: every number against its stored questions, and the page."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from typing import Any
from uuid import UUID

import pytest
from typer.testing import CliRunner

from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    Role,
)
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.golden import golden_hash
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.files import LocalFiles
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from rag_resources.reporting.page import render_report, write_report
from rag_resources.reporting.plot import HEIGHT, history_svg
from rag_resources.reporting.report import LEADING, read_report
from rag_resources.store.evaluations import fetch_evaluation
from rag_resources.store.golden import list_golden, write_golden
from rag_resources.store.notes import note_id
from rag_resources.store.promotions import promote
from tests.browser import chromium
from tests.report_page import Page
from tests.stored_evaluations import Asked, forge, store_evaluation

CONFIG = RetrievalConfig()
SCRIPT = "<script>alert(1)</script>"
DAY = datetime(2025, 3, 10, 8, 30, tzinfo=UTC)
NOTES = [note_id("default", "notes", name) for name in "abcdefgh"]
HIT_RATES = [f"hit_rate_at_{cutoff}" for cutoff in (1, 3, 5, 10)]
# The rank of the relevant note of each question; 0 for none.
RANKS = {
    "buena": (1, 1, 2, 1, 3, 1, 1, 7, 1, 2, 1, 0),
    "media": (1, 2, 5, 1, 0, 1, 4, 0, 1, 3, 0, 0),
    "mala": (0, 8, 0, 0, 0, 2, 0, 0, 6, 0, 0, 0),
}


@pytest.fixture(autouse=True)
def notes(database: Database) -> None:
    """Eight notes, and a model that may serve."""
    records = [
        NoteRecord(name, f"Título {name}", f"Texto de {name}. " * 30, DAY) for name in "abcdefgh"
    ]
    ingest(database, records, tenant="default", source="notes")
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO embedding_models"
            " (name, dimension, provider, digest, similarity_threshold, created_at)"
            " VALUES (%s, 3, 'p', 'd', 0, %s)",
            (CONFIG.model, DAY),
        )


def asked(ranks: Sequence[int], **changes: Any) -> list[Asked]:
    """Questions of several kinds, whose relevant note was found at a rank."""
    return [
        Asked(
            number,
            NOTES[: 1 + number % 2],
            ranking(rank),
            category=("factual", "causal", "temporal")[number % 3],
            difficulty=1 + number % 2,
            tags=["casa"] * (number % 4 == 0) + ["salud"] * (number % 5 == 0),
            **changes,
        )
        for number, rank in enumerate(ranks)
    ]


def ranking(rank: int) -> list[UUID]:
    """Ten notes, the first relevant one at a rank."""
    others = [*NOTES[2:], *(UUID(int=number) for number in range(10))]
    return [*others[: rank - 1], NOTES[0], *others][:10] if rank else others[:10]


def evaluate(database: Database, name: str, items: Sequence[Asked], *, day: int = 0) -> UUID:
    """Store an evaluation of the golden dataset as it is, some days after the first."""
    with database.transaction() as connection:
        golden = golden_hash(list_golden(connection))
    created_at = DAY + timedelta(days=day)
    return store_evaluation(
        database, name, items, config=CONFIG, golden=golden, created_at=created_at
    )


def ask(database: Database, items: Sequence[Asked]) -> None:
    """Make some questions the golden dataset."""
    with database.transaction() as connection:
        entries = [item.outcome.golden for item in items]
        write_golden(connection, entries, replace=True)


def serve(database: Database, evaluation_id: UUID) -> None:
    with database.transaction() as connection:
        evaluation = fetch_evaluation(connection, evaluation_id)
        assert evaluation
        promote(connection, evaluation, CONFIG, run_id=None)


def configurations(*names: str, role: Role = Role.CANDIDATE) -> dict[str, NamedConfiguration]:
    return {
        name: NamedConfiguration(name=name, description="x", role=role, retrieval=CONFIG)
        for name in names
    }


def page(database: Database, named: Mapping[str, NamedConfiguration] | None = None) -> Page:
    """Render the report and parse it."""
    read = Page(render_report(read_report(database, named or configurations(*RANKS))))
    assert not read.unclosed
    return read


@pytest.fixture
def three(database: Database) -> dict[str, UUID]:
    """Three configurations; the good one serves, and was evaluated before that too."""
    ask(database, asked(RANKS["buena"]))
    evaluate(database, "buena", asked(RANKS["media"]))
    stored = {
        name: evaluate(database, name, asked(ranks), day=day)
        for day, (name, ranks) in enumerate(RANKS.items(), start=1)
    }
    serve(database, stored["buena"])
    return stored


# --- The numbers, recomputed from evaluation_queries ------------------------------------------


class Recomputed:
    """An evaluation's numbers from nothing but the rows of its questions."""

    def __init__(self, database: Database, evaluation_id: UUID) -> None:
        with database.transaction() as connection:
            rows = connection.execute(
                "SELECT q.*, g.tags FROM evaluation_queries AS q"
                " INNER JOIN golden_dataset AS g ON g.id = q.golden_id"
                " WHERE q.evaluation_id = %s ORDER BY q.golden_id",
                (evaluation_id,),
            )
            self.rows = rows.fetchall()

    def metric(self, name: str) -> list[float]:
        """The values of a metric, a question each."""
        of_row: dict[str, Callable[[Any], float]] = {"mrr": reciprocal_rank, "ndcg_at_10": ndcg}
        for cutoff in (1, 3, 5, 10):
            of_row[f"hit_rate_at_{cutoff}"] = (
                lambda row, cutoff=cutoff: float(  # type: ignore[misc]
                    any(note in row.relevant_note_ids for note in row.retrieved_note_ids[:cutoff])
                )
            )
        # Each of these notes is one passage, and a user gets five.
        of_row["served_hit_rate"] = of_row["hit_rate_at_5"]
        return [of_row[name](row) for row in self.rows]

    def mean(self, name: str) -> float:
        return fmean(self.metric(name))

    def group(self, belongs: Callable[[Any], bool]) -> list[str]:
        """A cell of a group: Hit_Rate@10, and below it hits, questions and MRR."""
        chosen = [at for at, row in enumerate(self.rows) if belongs(row)]
        hits = [self.metric("hit_rate_at_10")[at] for at in chosen]
        mrr = fmean(self.metric("mrr")[at] for at in chosen)
        return [
            f"{fmean(hits):.3f}",
            f"{sum(hits):.0f} de {len(hits)} · MRR {mrr:.3f}",
        ]

    def latency(self, share: float, stage: str | None = None) -> float:
        """The nearest-rank percentile of whole questions, or of a stage."""
        values = sorted(
            row.stage_latencies[stage] if stage else row.latency_ms for row in self.rows
        )
        return float(values[math.ceil(share * len(values)) - 1])

    def hit_rate(self, name: str) -> list[str]:
        """A cell: the rate, and below it its Wilson interval."""
        return [f"{self.mean(name):.3f}", self.wilson(name)]

    def wilson(self, name: str) -> str:
        count, rate, z = len(self.rows), self.mean(name), 1.959963984540054
        middle = (rate + z * z / (2 * count)) / (1 + z * z / count)
        spread = math.sqrt(rate * (1 - rate) / count + (z / (2 * count)) ** 2)
        half = z * spread / (1 + z * z / count)
        return f"{max(0, middle - half):.3f}–{min(1, middle + half):.3f}"


def reciprocal_rank(row: Any) -> float:
    ranks = [
        rank
        for rank, note in enumerate(row.retrieved_note_ids, start=1)
        if note in row.relevant_note_ids
    ]
    return 1 / ranks[0] if ranks else 0.0


def ndcg(row: Any) -> float:
    gain = sum(
        1 / math.log2(rank + 1)
        for rank, note in enumerate(row.retrieved_note_ids[:10], start=1)
        if note in row.relevant_note_ids
    )
    most = sum(1 / math.log2(rank + 1) for rank in range(1, len(row.relevant_note_ids) + 1))
    return gain / most


@pytest.fixture
def recomputed(database: Database, three: Mapping[str, UUID]) -> dict[str, Recomputed]:
    return {name: Recomputed(database, key) for name, key in three.items()}


def test_configurations_have_the_numbers_of_their_questions(
    database: Database, recomputed: Mapping[str, Recomputed]
) -> None:
    found = page(database)
    table = found.table("La última evaluación de cada configuración")
    assert [row[0][0] for row in table.body] == ["buena", "media", "mala"]
    assert table.header[1:] == [
        *("Control", "Hit_Rate@1", "Hit_Rate@3", "Hit_Rate@5", "Hit_Rate@10"),
        *("Hit_Rate@final", "MRR", "nDCG@10", "p50/p95 ms", "¿Puede servir?"),
    ]
    for row in table.body:
        own = recomputed[row[0][0]]
        served = own.hit_rate("served_hit_rate")
        assert row[2:7] == [*(own.hit_rate(name) for name in HIT_RATES), served]
        assert row[7:-1] == [
            [f"{own.mean('mrr'):.3f}"],
            [f"{own.mean('ndcg_at_10'):.3f}"],
            [f"{own.latency(0.5):.0f}/{own.latency(0.95):.0f}"],
        ]
    assert [row[1] for row in table.body] == [["≈ pasa, sin certeza"], ["✗ no pasa"], ["✗ no pasa"]]
    day = "2025-03-11 08:30 · e5_small · 12 preguntas"
    assert table.body[0][0] == ["buena", _("★ serves"), day]


def test_gates_say_why_in_words(database: Database, three: Mapping[str, UUID]) -> None:
    named = configurations("buena", "media") | configurations("mala", role=Role.REFERENCE)
    found = page(database, named)
    good, middle, bad = found.table("La última evaluación").body
    assert good[-1] == [_("★ serves")]
    assert middle[-1] == ["no: no pasa el control, Hit_Rate@10 = 0.667 < 0.85"]
    assert bad[-1] == [_("no: it is a reference, for comparison only")]
    said = found.sections["against"].partition("mala")[0]
    of_good, of_middle = said.partition("media")[::2]
    assert (
        _("Among the first ten, questions lost: {lost}; gained: {gained}.").format(lost=0, gained=3)
        not in of_good
    ), "its own past is itself"
    assert (
        _("Among the first ten, questions lost: {lost}; gained: {gained}.").format(lost=3, gained=0)
        in of_middle
    )
    assert "«buena», que sirve" in of_middle
    assert "Hit_Rate@10 es peor, y en más de 2 puntos (IC 90 %" in of_middle


def test_the_history_has_the_numbers_of_every_evaluation(
    database: Database, recomputed: Mapping[str, Recomputed]
) -> None:
    table = page(database).table("Las 4 evaluaciones más recientes de 4")
    assert [row[0] + row[1] for row in table.body] == [
        ["2025-03-13 08:30", "mala"],
        ["2025-03-12 08:30", "media"],
        ["2025-03-11 08:30", "buena"],
        ["2025-03-10 08:30", "buena"],
    ]
    for row in table.body[:3]:
        own = recomputed[row[1][0]]
        assert row[2:5] == [
            own.hit_rate("hit_rate_at_10"),
            [f"{own.mean('mrr'):.3f}"],
            ["12"],
        ]


def test_facts_have_the_numbers_of_the_database(
    database: Database, three: Mapping[str, UUID]
) -> None:
    with database.transaction() as connection:
        golden = golden_hash(list_golden(connection))
    said = page(database).sections["serving"]
    assert "buena, con el modelo e5_small" in said
    assert f"12 en el conjunto {golden}" in said
    assert "notas: 8 (fragmentadas: 0); fragmentos: 8" in said


# --- The questions --------------------------------------------------------------------------


def test_flipped_questions_name_their_notes_and_what_came_in_instead(database: Database) -> None:
    """Compared with what serves, which is named."""
    a, b, c, d = NOTES[:4]
    ask(database, [Asked(0, [a], []), Asked(1, [b], [])])
    serve(database, evaluate(database, "buena", [Asked(0, [a], [a, b]), Asked(1, [b], [c])]))
    evaluate(database, "media", [Asked(0, [a], [c, b, d]), Asked(1, [b], [b])], day=1)
    (flips,) = (table for table in page(database).tables if len(table.header) == 4)
    assert flips.body == [
        [["¿pregunta 0?"], ["1 → > 10"], ["a"], ["c, d"]],
        [["¿pregunta 1?"], ["> 10 → 1"], ["b"], ["–"]],
    ]


def test_questions_that_what_serves_misses_are_listed_with_their_notes(
    database: Database, three: Mapping[str, UUID]
) -> None:
    """Or the best one, before anything serves; a note that is gone is named by its id."""
    table = page(database).table(
        _("Questions that “{name}” does not find among the first ten: {count}").format(
            name="buena", count=1
        )
    )
    assert table.body == [[["¿pregunta 11?"], ["temporal"], ["a, b"]]]
    with database.transaction() as connection:
        forge(connection)
        connection.execute("DELETE FROM promotions")
        connection.execute("DELETE FROM notes WHERE id = %s", (NOTES[0],))
    again = page(database).table(
        _("Questions that “{name}” does not find among the first ten: {count}").format(
            name="buena", count=1
        )
    )
    assert again.body[0][2] == [f"{NOTES[0]}, b"]


# --- Other states of the database -------------------------------------------------------------


def test_before_the_first_evaluation_it_says_what_to_do(database: Database) -> None:
    found = page(database)
    assert found.sections.keys() == {"", "serving"}
    assert (
        _(
            "There is no evaluation to show yet. Next step: “make run”, which does everything; or "
            "import questions with “rag golden import FILE”, evaluate with “rag evaluate "
            "CONFIGURATION” and repeat “rag report”."
        )
        in found.sections["serving"]
    )
    assert _("No promoted configuration serves yet.") in found.sections["serving"]


def test_a_single_evaluation_has_nothing_beside_it(database: Database) -> None:
    ask(database, asked(RANKS["buena"]))
    evaluate(database, "buena", asked(RANKS["buena"]))
    found = page(database)
    assert _("There is no other evaluation to compare with.") in found.sections["against"]
    assert found.table("La última evaluación").body[0][-1] == [_("yes")]


def test_archived_questions_leave_the_means(database: Database, three: Mapping[str, UUID]) -> None:
    with database.transaction() as connection:
        connection.execute(
            "DELETE FROM evaluation_queries WHERE evaluation_id = %s", (three["media"],)
        )
    found = page(database)
    assert len(found.table("La última evaluación").body) == 3
    said = found.sections["against"].partition("media")[2].partition("mala")[0]
    assert _("There is no other evaluation to compare with.") in said


def test_other_questions_are_told_apart_and_compared_over_what_both_asked(
    database: Database, three: Mapping[str, UUID]
) -> None:
    edited = asked(RANKS["media"])
    edited[4] = replace(edited[4], relevant=[NOTES[5]])
    ask(database, [*edited, Asked(50, NOTES[:1], [])])
    evaluate(database, "media", [*edited, Asked(50, NOTES[:1], NOTES[:1])], day=9)
    found = page(database)
    assert found.table("La última evaluación").body[0][0][3].startswith("con otro conjunto")
    said = found.sections["against"].partition("media")[2].partition("mala")[0]
    assert (
        _("Among the first ten, questions lost: {lost}; gained: {gained}.").format(lost=2, gained=0)
        in said
    )
    assert (
        _(
            "Questions that are not in both evaluations, or have other relevant notes, do not "
            "count: {count}."
        ).format(count=2)
        in said
    )


def test_a_rollback_says_its_reason(database: Database, three: Mapping[str, UUID]) -> None:
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO promotions"
            " (configuration, config, config_hash, model, promoted_at, reason)"
            " VALUES ('media', '{}', 'h', %s, %s, 'lo pidió Marta')",
            (CONFIG.model, DAY + timedelta(days=3)),
        )
    assert "al deshacer lo anterior: lo pidió Marta" in page(database).sections["serving"]


def test_of_many_configurations_the_best_are_compared_and_what_serves(database: Database) -> None:
    count = LEADING + 3
    ask(database, asked([1] * count))
    stored = [
        evaluate(database, f"c{at:02}", asked([0] * at + [1] * (count - at))) for at in range(count)
    ]
    serve(database, stored[-1])
    report = read_report(database, {})
    found = Page(render_report(report))
    assert len(found.table("La última evaluación").body) == count
    shown = [f"c{at:02}" for at in range(LEADING - 1)] + [f"c{count - 1:02}"]
    assert [item.name for item in report.leading] == shown
    expected = _("The {shown} best of {total} configurations are drawn and compared.").format(
        shown=LEADING, total=count
    )
    assert expected in found.sections["configurations"]
    gone = _("no: {reason}").format(reason=_("there is no configuration of that name any more"))
    assert found.table("La última evaluación").body[0][-1] == [gone]


def test_why_evaluations_are_stale_is_said(database: Database, three: Mapping[str, UUID]) -> None:
    """Of notes that came in since, or of an edited configuration."""
    assert (
        _(
            "One of the two evaluations is stale: what changed may come from the notes or the "
            "questions, not from the configuration."
        )
        not in page(database).sections["against"]
    )
    records = [
        NoteRecord(f"nueva {month}", "Nueva", "Otra nota.", DAY.replace(month=month))
        for month in (1, 2, 5, 6)
    ]
    ingest(database, records, tenant="default", source="notes")
    edited = NamedConfiguration(
        name="mala",
        description="x",
        role=Role.CANDIDATE,
        retrieval=RetrievalConfig(diversity_weight=0.5),
    )
    found = page(database, configurations("buena", "media") | {"mala": edited})
    moved = "han cambiado en 4 meses (de 2025-01 a 2025-06): notas"
    assert (
        _(
            "One of the two evaluations is stale: what changed may come from the notes or the "
            "questions, not from the configuration."
        )
        in found.sections["against"]
    )
    verdicts = [row[1] for row in found.table("La última evaluación").body]
    assert [said[0] for said in verdicts] == ["· obsoleta"] * 3
    reasons = (moved, moved, _("the configuration has changed since its last evaluation"))
    for said, reason in zip(verdicts, reasons, strict=True):
        assert said[1].startswith(reason)


def test_the_plot_draws_each_configuration_and_each_promotion(
    database: Database, three: Mapping[str, UUID]
) -> None:
    """A line with its name; what serves has two points, and was promoted after the last."""
    drawn = history_svg(read_report(database, configurations(*RANKS)))
    assert drawn.count("<polyline") == len(RANKS)
    assert drawn.count("<circle") == 4 + len(RANKS), "its points, and one beside each name"
    assert [drawn.count(f">{name}</text>") for name in RANKS] == [1, 1, 1]
    heights = {float(y) for y in re.findall(r'cy="([\d.]+)"', drawn)}
    assert all(0 <= y <= HEIGHT for y in heights)


# --- The page ---------------------------------------------------------------------------------


def test_what_others_wrote_is_text(database: Database) -> None:
    """In questions, names of notes, reasons and configurations, also those drawn."""
    record = NoteRecord(f"{SCRIPT} malo", "", "nota", DAY)
    ingest(database, [record], tenant="default", source="notes")
    bad = note_id("default", "notes", f"{SCRIPT} malo")
    items = [Asked(0, [bad], [bad], text=f"{SCRIPT} pregunta", tags=[f"{SCRIPT} etiqueta"])]
    ask(database, items)
    serve(database, evaluate(database, "buena", items))
    name = f"{SCRIPT} $a$_b$ nombre"
    evaluate(database, name, [replace(items[0], found=[NOTES[0]])], day=1)
    with database.transaction() as connection:
        forge(connection)
        connection.execute("UPDATE promotions SET reason = %s", (f"{SCRIPT} motivo",))
    found = page(database)
    assert "script" not in {tag for tag, _, _ in found.attributes}
    everything = " ".join(found.sections.values())
    for text in ("nombre", "pregunta", "motivo"):
        assert text in everything
    assert found.sections["history"].count(name) >= 2


def test_the_page_needs_nothing_else(database: Database, three: Mapping[str, UUID]) -> None:
    """No address, no script; every reference inside it leads to the one element with that id."""
    html = render_report(read_report(database, configurations(*RANKS)))
    found = Page(html)
    assert "http:" not in html
    assert "https:" not in html
    assert "@import" not in html
    assert not {tag for tag, _, _ in found.attributes} & {"script", "img", "iframe", "link"}
    assert len(set(found.ids)) == len(found.ids)
    pointed = {
        *(value[1:] for _, name, value in found.attributes if name == "href"),
        *re.findall(r"url\(#([^)]+)\)", html),
        *(
            key
            for _, name, value in found.attributes
            if name == "aria-labelledby"
            for key in value.split()
        ),
    }
    assert pointed <= set(found.ids)
    assert ("html", "lang", "es") in found.attributes
    assert "currentColor" in html
    focusable = [tag for tag, name, _ in found.attributes if name == "tabindex"]
    labels = {"aria-label", "aria-labelledby"}
    named = [tag for tag, name, _ in found.attributes if name in labels and tag in set(focusable)]
    assert len(named) == len(focusable) > 3
    assert ("a", "href", "#content") in found.attributes
    headers = [value for tag, name, value in found.attributes if (tag, name) == ("th", "scope")]
    assert set(headers) == {"row", "col"}


def test_the_same_evaluations_give_the_same_page(
    database: Database, three: Mapping[str, UUID]
) -> None:
    report = read_report(database, configurations(*RANKS))
    again = read_report(database, configurations(*RANKS))
    assert render_report(report) == render_report(replace(again, read_at=report.read_at))


def test_a_page_is_written_whole_or_not_at_all(database: Database, tmp_path: Path) -> None:
    report = read_report(database, {})
    path = tmp_path / "a" / "informe.html"
    assert write_report(report, LocalFiles(tmp_path), "a/informe.html") == str(path)
    assert path.read_text("utf-8").startswith("<!doctype html>")
    assert [item.name for item in path.parent.iterdir()] == ["informe.html"]
    (tmp_path / "carpeta").mkdir()
    with pytest.raises(InvalidParameterError, match="carpeta"):
        write_report(report, LocalFiles(tmp_path), "carpeta")
    with pytest.raises(InvalidParameterError, match="No se puede escribir"):
        write_report(report, LocalFiles(path), "dentro.html")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a", "carpeta"]


def test_the_command_writes_where_it_is_told_or_at_home(
    database: Database,
    database_url: str,
    three: Mapping[str, UUID],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rag_resources.cli.main import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("RAG_HOME", str(tmp_path / "home"))
    for arguments, path in (
        (["--output", "propio.html"], tmp_path / "propio.html"),
        ([], tmp_path / "home" / "reports" / "evaluation.html"),
    ):
        shown = CliRunner().invoke(app, ["report", *arguments])
        assert shown.exit_code == 0, shown.output
        assert str(path) in shown.output
        assert len(Page(path.read_text("utf-8")).tables) >= 5


def test_the_table_of_configurations_fits_a_window(
    database: Database, three: Mapping[str, UUID], tmp_path: Path
) -> None:
    """Nothing is cut off from 1,300 pixels on; in a smaller one the table scrolls, not the page."""
    path = tmp_path / "informe.html"
    path.write_text(render_report(read_report(database, configurations(*RANKS))), "utf-8")
    with chromium() as browser:
        shown = browser.new_page()
        shown.goto(path.as_uri())
        region = shown.locator("#configurations .scroll").first
        for width, fits in ((1400, True), (1300, True), (400, False)):
            shown.set_viewport_size({"width": width, "height": 900})
            own, needed = region.evaluate("e => [e.clientWidth, e.scrollWidth]")
            assert (needed <= own) is fits, (width, own, needed)
            whole = shown.evaluate("document.documentElement.scrollWidth")
            assert whole <= width, (width, whole)
