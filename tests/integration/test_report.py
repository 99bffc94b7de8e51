"""The evaluation report: every number against its stored questions, and the page."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations, product
from pathlib import Path
from statistics import fmean
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    Role,
)
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.golden import golden_hash
from rag_resources.core.messages import Message
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.files import LocalFiles
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.labels import stage_label
from rag_resources.reporting.page import render_report, write_report
from rag_resources.reporting.reading import LEADING, read_report
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
QUESTIONS = 12
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


def exact_p_values(pairs: Mapping[tuple[str, str], Mapping[str, np.ndarray]]) -> dict[Any, float]:
    """The p-value of every difference: all sign vectors, or exact McNemar; then Holm over all."""
    plain = {}
    for pair, differences in pairs.items():
        for name, values in differences.items():
            if name == "hit_rate_at_10":
                lost, gained = int((values < 0).sum()), int((values > 0).sum())
                below = binom.cdf(min(lost, gained), lost + gained, 0.5) if lost + gained else 1
                plain[pair, name] = min(1.0, 2 * float(below))
            else:
                signs = np.array(list(product((-1, 1), repeat=len(values))))
                sums = np.abs(signs @ values)
                plain[pair, name] = float((sums >= abs(values.sum()) - 1e-9).mean())
    adjusted, highest = {}, 0.0
    for rank, key in enumerate(sorted(plain, key=plain.__getitem__)):
        highest = max(highest, min(1.0, plain[key] * (len(plain) - rank)))
        adjusted[key] = highest
    return adjusted


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
        *("Hit_Rate@final", "MRR", "nDCG@10", "p50/p95 ms"),
    ]
    for row in table.body:
        own = recomputed[row[0][0]]
        served = own.hit_rate("served_hit_rate")
        assert row[2:7] == [*(own.hit_rate(name) for name in HIT_RATES), served]
        assert row[7:] == [
            [f"{own.mean('mrr'):.3f}"],
            [f"{own.mean('ndcg_at_10'):.3f}"],
            [f"{own.latency(0.5):.0f}/{own.latency(0.95):.0f}"],
        ]
        said = f"{own.mean('hit_rate_at_10'):.3f} ({own.wilson('hit_rate_at_10')})"
        assert said in found.sections["configurations"].replace(table.caption, "")
    assert [row[1] for row in table.body] == [["≈ pasa, sin certeza"], ["✗ no pasa"], ["✗ no pasa"]]
    day = "2025-03-11 08:30 · e5_small · 12 preguntas"
    assert table.body[0][0] == ["buena", Message.REPORT_IS_SERVING, day]


def test_gates_say_why_in_words(database: Database, recomputed: Mapping[str, Recomputed]) -> None:
    named = configurations("buena", "media") | configurations("mala", role=Role.REFERENCE)
    good, middle, bad = page(database, named).table("Qué controles pasa cada configuración").body
    own = recomputed["buena"]
    rate, interval = f"{own.mean('hit_rate_at_10'):.3f}", own.wilson("hit_rate_at_10")
    said = good[1][0]
    assert f"Hit_Rate@10 = {rate} (intervalo al 95 %: {interval}; 12 preguntas" in said
    more = int(re.search(r"al menos (\d+) preguntas más", said)[1])  # type: ignore[index]
    assert settles(own.mean("hit_rate_at_10"), 12 + more)
    assert not any(settles(own.mean("hit_rate_at_10"), 12 + less) for less in range(more))
    assert good[2] == [f"✓ {own.latency(0.95):.0f} ms, menos de 2000 ms"]
    assert good[5] == [Message.REPORT_IS_SERVING]
    assert "Perdidas: 0; ganadas: 3" in good[4][0]
    assert "«buena» (2025-03-11 08:30)" in middle[4][0]
    assert "Perdidas: 3; ganadas: 0" in middle[4][0]
    assert middle[4][1].startswith("Hit_Rate@10 es peor, y en más de 2 puntos (IC 90 %")
    assert middle[5] == ["no: no pasa el control, Hit_Rate@10 = 0.667 < 0.85"]
    assert bad[5] == [Message.REPORT_REFERENCE]


def settles(rate: float, queries: int) -> bool:
    """Whether the Wilson lower bound reaches the threshold if the rate holds."""
    hits, z = math.floor(rate * queries + 1e-9), 1.959963984540054
    share = hits / queries
    middle = share + z * z / (2 * queries)
    half = z * math.sqrt(share * (1 - share) / queries + z * z / (4 * queries**2))
    return (middle - half) / (1 + z * z / queries) >= 0.85


def test_groups_have_the_numbers_of_their_questions(
    database: Database, recomputed: Mapping[str, Recomputed]
) -> None:
    found = page(database)
    belongs: dict[str, Callable[[str], Callable[[Any], bool]]] = {
        "Por categoría": lambda name: lambda row: row.category == name,
        "Por dificultad": lambda name: lambda row: str(row.difficulty) == name,
        "Por etiqueta": lambda name: lambda row: name in row.tags,
    }
    sizes = []
    for caption, of_group in belongs.items():
        table = found.table(caption)
        sizes.append(len(table.body))
        for row in table.body:
            expected = [recomputed[name].group(of_group(row[0][0])) for name in table.header[1:]]
            assert row[1:] == expected
    assert sizes == [3, 2, 2]


def test_latencies_have_the_numbers_of_their_questions(
    database: Database, recomputed: Mapping[str, Recomputed]
) -> None:
    """The slowest stage first, the whole last; and the same beside the bars."""
    found = page(database)
    table = found.table("Milisegundos")
    stages = ("search", "embed")
    assert [row[0] for row in table.body] == [*([stage_label(it)] for it in stages), ["total"]]
    for row, stage in zip(table.body, (*stages, None), strict=True):
        assert row[1:] == [
            [f"{own.latency(0.5, stage):.1f}", f"{own.latency(0.95, stage):.1f}"]
            for own in (recomputed[name] for name in table.header[1:])
        ]
    own = recomputed["buena"]
    assert f"{own.latency(0.5):.0f} / {own.latency(0.95):.0f} ms" in found.sections["latency"]


def test_the_matrix_has_differences_and_verdicts_of_the_questions(
    database: Database, recomputed: Mapping[str, Recomputed]
) -> None:
    """P-values are those of all sign vectors, but for the 9,999 that are drawn."""
    table = page(database).table("Cada fila frente a cada columna, con las mismas 12 preguntas")
    names = table.header[1:]
    assert names == ["buena", "media", "mala"] == [row[0][0] for row in table.body]
    metrics = ("hit_rate_at_10", "served_hit_rate", "mrr", "ndcg_at_10")
    pairs = {
        (before, after): {
            name: np.array(recomputed[after].metric(name))
            - np.array(recomputed[before].metric(name))
            for name in metrics
        }
        for before, after in combinations(names, 2)
    }
    p_values = exact_p_values(pairs)
    verdicts = set()
    for row, column in product(range(3), repeat=2):
        cell = table.body[row][column + 1]
        if row == column:
            assert cell == ["–"]
            continue
        pair = (names[min(row, column)], names[max(row, column)])
        sign = 1 if row > column else -1
        for at, label in ((1, "mrr"), (3, "hit_rate_at_10")):
            difference = sign * pairs[pair][label].mean()
            assert cell[at].split()[1] == f"{difference:+.3f}"
            shown = float(cell[at + 1].removeprefix("p ").removeprefix("< "))
            assert shown == pytest.approx(p_values[pair, label], abs=0.02)
        evidence = p_values[pair, "mrr"] <= 0.05
        better = sign * pairs[pair]["mrr"].mean() > 0
        assert cell[0] == ("▲ mejor" if better else "▼ peor") if evidence else "· sin pruebas"
        verdicts.add(cell[0])
    assert verdicts == {"▲ mejor", "▼ peor", "· sin pruebas"}


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
    assert "8 notas (0 fragmentadas), 0 fragmentos" in said
    assert "3 configuraciones; la última evaluación, el 2025-03-13 08:30" in said


# --- The questions --------------------------------------------------------------------------


def test_flipped_questions_show_their_notes_and_what_came_in_instead(
    database: Database, three: Mapping[str, UUID]
) -> None:
    """Compared with what serves; the serving one with its own previous evaluation."""
    said = page(database).sections["flips"]
    middle = said.partition("media (perdidas: 3, ganadas: 0)")[2].partition("mala (")[0]
    assert "¿pregunta 4?" in middle
    assert "▼ perdida puesto 3 → > 10 · causal" in middle
    assert "Notas relevantes Título a a Texto de a. Texto de a." in middle
    serving = said.partition("buena (perdidas: 0, ganadas: 3)")[2].partition("media (")[0]
    assert "▲ ganada puesto > 10 → 3 · causal" in serving
    assert Message.REPORT_INSTEAD not in serving


def test_newcomers_are_named(database: Database) -> None:
    a, b, c, d = NOTES[:4]
    ask(database, [Asked(0, [a], [])])
    serve(database, evaluate(database, "buena", [Asked(0, [a], [a, b])]))
    evaluate(database, "media", [Asked(0, [a], [c, b, d])], day=1)
    said = page(database).sections["flips"]
    assert "puesto 1 → > 10" in said
    _, _, instead = said.partition(Message.REPORT_INSTEAD)
    assert "Título c" in instead
    assert "Título d" in instead
    assert "Título b" not in instead


def test_notes_that_are_gone_or_expired_show_nothing_of_theirs(database: Database) -> None:
    a, b = NOTES[:2]
    ask(database, [Asked(0, [a, b], [])])
    evaluate(database, "buena", [Asked(0, [a, b], [])])
    with database.transaction() as connection:
        connection.execute("DELETE FROM notes WHERE id = %s", (a,))
        connection.execute("UPDATE notes SET expires_at = now() WHERE id = %s", (b,))
    said = page(database).sections["unfound"]
    assert f"{a} (ya no existe o ha caducado)" in said
    assert f"{b} (ya no existe o ha caducado)" in said
    assert "Título" not in said


def test_questions_that_none_finds_are_listed(
    database: Database, three: Mapping[str, UUID]
) -> None:
    said = page(database).sections["unfound"]
    assert "3 configuraciones comparadas: 1 de 12." in said
    assert "¿pregunta 11?" in said
    assert "¿pregunta 10?" not in said


def test_questions_found_only_below_what_a_user_gets_are_listed_with_their_ranks(
    database: Database, three: Mapping[str, UUID]
) -> None:
    """A user gets five notes: the one at rank 7 is none of them."""
    said = page(database).sections["in-vain"]
    assert "buena (1)" in said
    assert "mala (2)" in said
    assert "media (" not in said
    assert re.search(r"¿pregunta 7\?\s*7", said)
    assert Message.REPORT_IN_VAIN_NONE not in said


def test_a_report_without_questions_found_in_vain_says_so(database: Database) -> None:
    ask(database, asked([1] * QUESTIONS))
    evaluate(database, "buena", asked([1] * QUESTIONS))
    assert Message.REPORT_IN_VAIN_NONE in page(database).sections["in-vain"]


def test_many_flips_are_counted_and_some_of_both_kinds_shown(database: Database) -> None:
    count = 40
    found, missed = (asked([rank] * count) for rank in (1, 0))
    ask(database, found)
    before = [*found[: count // 2], *missed[count // 2 :]]
    after = [*missed[: count // 2], *found[count // 2 :]]
    serve(database, evaluate(database, "buena", before))
    evaluate(database, "media", after, day=1)
    said = page(database).sections["flips"]
    assert "media (perdidas: 20, ganadas: 20)" in said
    assert said.count(Message.REPORT_LOST) == 8
    assert said.count(Message.REPORT_GAINED) == 7
    assert "Se muestran 15 de 40." in said


# --- Other states of the database -------------------------------------------------------------


def test_before_the_first_evaluation_it_says_what_to_do(database: Database) -> None:
    found = page(database)
    assert found.sections.keys() == {"", "serving"}
    assert Message.REPORT_EMPTY in found.sections["serving"]
    assert Message.REPORT_SERVES_NOTHING in found.sections["serving"]


def test_a_single_evaluation_has_nothing_beside_it(database: Database) -> None:
    ask(database, asked(RANKS["buena"]))
    evaluate(database, "buena", asked(RANKS["buena"]))
    found = page(database)
    assert Message.REPORT_MATRIX_NOTHING in found.sections["matrix"]
    assert Message.REPORT_AGAINST_NOTHING in found.sections["flips"]
    assert found.table("Qué controles pasa").body[0][5] == [Message.REPORT_MAY_SERVE]


def test_archived_questions_leave_the_means_and_say_so(
    database: Database, three: Mapping[str, UUID]
) -> None:
    with database.transaction() as connection:
        connection.execute(
            "DELETE FROM evaluation_queries WHERE evaluation_id = %s", (three["media"],)
        )
    found = page(database)
    assert len(found.table("La última evaluación").body) == 3
    assert found.table("Cada fila").header[1:] == ["buena", "mala"]
    assert "No se comparan «media»" in found.sections["matrix"]
    assert Message.REPORT_ARCHIVED in found.sections["flips"]


def test_other_questions_are_told_apart_and_not_compared(
    database: Database, three: Mapping[str, UUID]
) -> None:
    """An evaluation of an edited golden dataset stands beside what serves over what they share."""
    edited = asked(RANKS["media"])
    edited[4] = replace(edited[4], relevant=[NOTES[5]])
    ask(database, [*edited, Asked(50, NOTES[:1], [])])
    evaluate(database, "media", [*edited, Asked(50, NOTES[:1], NOTES[:1])], day=9)
    found = page(database)
    assert found.table("La última evaluación").body[0][0][3].startswith("con otro conjunto")
    assert Message.REPORT_MATRIX_NOTHING in found.sections["matrix"]
    assert "No se comparan «buena», «mala»" in found.sections["matrix"]
    middle = next(row for row in found.table("Qué controles pasa").body if row[0] == ["media"])
    assert "con las mismas preguntas (11). Perdidas: 2; ganadas: 0" in middle[4][0]
    assert "o que tienen otras notas relevantes: 2." in middle[4][4]
    good = found.table("Qué controles pasa").body[0]
    assert good[5] == [Message.REPORT_IS_SERVING]


def test_events_are_listed(database: Database, three: Mapping[str, UUID]) -> None:
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO promotions"
            " (configuration, config, config_hash, model, promoted_at, evaluation_id)"
            " SELECT configuration, config, config_hash, model, promoted_at + interval '1 hour',"
            " evaluation_id FROM promotions WHERE configuration = 'buena'"
        )
        connection.execute(
            "INSERT INTO promotions"
            " (configuration, config, config_hash, model, promoted_at, reason)"
            " VALUES ('media', '{}', 'h', %s, %s, 'lo pidió Marta')",
            (CONFIG.model, DAY + timedelta(days=3)),
        )
        for gate, day in (("open", 1), ("closed", 2)):
            connection.execute(
                "INSERT INTO migration_batches (model, chunking_hash, run_id, months, finished_at,"
                " config_hash, golden_hash, total_queries, hit_rate_at_10, mrr, latency_p95_ms,"
                " found, missed, level, gate, reason) VALUES ('m', 'c', %s, '{2025-01}', %s, 'h',"
                " 'g', 4, 0.75, 0.5, 9, '{}', '{}', 0, %s, '{\"text\": \"porque sí\"}')",
                (gate, DAY + timedelta(days=day), gate),
            )
    found = page(database)
    promotions = found.table("Qué ha servido")
    assert [row[1] for row in promotions.body] == [["media"], ["buena"], ["buena"]]
    assert [row[3] for row in promotions.body[1:]] == [[Message.REPORT_CONFIRMED], ["–"]]
    assert promotions.body[0][3] == ["lo pidió Marta"]
    assert "al deshacer lo anterior: lo pidió Marta" in found.sections["serving"]
    assert found.table("Los lotes").body[0] == [
        *(["2025-03-12 08:30"], ["m"], ["2025-01"], ["0.750"], ["0.500"]),
        *(["cerrado"], ["porque sí"]),
    ]


def test_what_a_judge_thinks_is_shown_with_what_is_missing(
    database: Database, three: Mapping[str, UUID]
) -> None:
    assert "answers" not in page(database).sections
    with database.transaction() as connection:
        forge(connection)
        connection.execute(
            "UPDATE evaluation_results SET faithfulness = 0.25, judge = 'llm', judge_model = 'm',"
            " judge_version = 'v2', answerer = 'a1', judged_queries = 9, judge_failures = 3"
            " WHERE id = %s",
            (three["media"],),
        )
    found = page(database)
    assert found.table("Lo que el juez").body == [
        [["media"], ["0.250"], ["sin juicio"], ["9"], ["3"], ["llm", "m", "v2"], ["a1"]]
    ]
    assert ("a", "href", "#answers") in found.attributes


def test_of_many_configurations_the_best_are_compared_and_what_serves(database: Database) -> None:
    count = LEADING + 3
    ask(database, asked([1] * count))
    stored = [
        evaluate(database, f"c{at:02}", asked([0] * at + [1] * (count - at))) for at in range(count)
    ]
    serve(database, stored[-1])
    found = page(database, {})
    assert len(found.table("La última evaluación").body) == count
    shown = [f"c{at:02}" for at in range(LEADING - 1)] + [f"c{count - 1:02}"]
    stale = [f"{name} (obsoleta)" for name in shown]  # Their files are gone.
    assert found.table("Cada fila").header[1:] == stale
    expected = Message.REPORT_LEADING.format(shown=LEADING, total=count)
    assert expected in found.sections["configurations"]
    gone = Message.REPORT_MAY_NOT_SERVE.format(reason=Message.REPORT_CONFIGURATION_GONE)
    assert found.table("Qué controles pasa").body[0][5] == [gone]


def test_why_evaluations_are_stale_is_said_once_and_referred_to(
    database: Database, three: Mapping[str, UUID]
) -> None:
    """Two of them for one reason, and one of an edited configuration for another."""
    before = page(database)
    assert Message.REPORT_REASONS not in before.sections["configurations"]
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
    everything = " ".join(found.sections.values())
    assert everything.count(moved) == 1
    assert everything.count(Message.REFUSED_CONFIG_CHANGED) == 1
    said = found.sections["configurations"]
    assert f"motivo 1 (buena, media): {moved}" in said
    assert f"motivo 2 (mala): {Message.REFUSED_CONFIG_CHANGED}" in said
    assert Message.REPORT_AGAINST_STALE not in before.sections["flips"]
    assert Message.REPORT_AGAINST_STALE in found.sections["flips"]
    assert "mala (obsoleta) (perdidas" in found.sections["flips"]
    verdicts = [row[1] for row in found.table("La última evaluación").body]
    assert verdicts == [
        ["· obsoleta", "motivo 1"],
        ["· obsoleta", "motivo 1"],
        ["· obsoleta", "motivo 2"],
    ]
    _, middle, bad = found.table("Qué controles pasa").body
    assert middle[1][0].startswith("· Evaluación obsoleta:motivo 1. Entonces: no pasa")
    assert middle[5] == ["no: su última evaluación está obsoleta:motivo 1"]
    assert bad[5] == ["no: su última evaluación está obsoleta:motivo 2"]
    references = [value for tag, name, value in found.attributes if (tag, name) == ("a", "href")]
    assert references.count("#reason-1") == 5
    assert {"reason-1", "reason-2"} <= set(found.ids)


# --- The page ---------------------------------------------------------------------------------


def test_what_others_wrote_is_text(database: Database) -> None:
    """In questions, notes, tags, reasons and names, also those drawn; `$` is no formula."""
    record = NoteRecord("malo", f"{SCRIPT} título", f"{SCRIPT} nota", DAY)
    ingest(database, [record], tenant="default", source="notes")
    bad = note_id("default", "notes", "malo")
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
    for text in ("título", "nota", "pregunta", "etiqueta", "motivo"):
        assert f"{SCRIPT} {text}" in everything
    drawn = found.sections["configurations"]
    assert drawn.count(name) >= 3


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
    assert len(named) == len(focusable) > 5
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
        assert len(Page(path.read_text("utf-8")).tables) > 5


def test_the_table_of_configurations_fits_a_window_and_says_where_it_goes_on(
    database: Database, three: Mapping[str, UUID], tmp_path: Path
) -> None:
    """Nothing is cut off from 1,000 pixels on; on a telephone a hint says so, but not on paper."""
    path = tmp_path / "informe.html"
    path.write_text(render_report(read_report(database, configurations(*RANKS))), "utf-8")
    with chromium() as browser:
        shown = browser.new_page()
        shown.goto(path.as_uri())
        region = shown.locator("#configurations .scroll").first
        for width, fits in ((1400, True), (1300, True), (1000, True), (400, False)):
            shown.set_viewport_size({"width": width, "height": 900})
            own, needed = region.evaluate("e => [e.clientWidth, e.scrollWidth]")
            assert (needed <= own) is fits, (width, own, needed)
            assert region.locator(".hint").is_visible() is not fits
        shown.emulate_media(media="print")
        assert not region.locator(".hint").is_visible()
