"""A vault of 700 notes with the shares of eight public Spanish vaults of Obsidian."""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from rag_resources.core.blocks import read, rendered
from rag_resources.core.types import NoteRecord
from rag_resources.ingestion.sources import iter_source
from rag_resources.ingestion.survey import survey

NOTES = 700
COMMITS = 24
FIRST_DAY = datetime(2024, 3, 4, 10, tzinfo=UTC)
STATED, NAMED = 0.072, 0.035
SHARES = {
    "[[Nota {number}|la otra]]": 0.52,
    "#casa/obra": 0.16,
    "> [!tip]+ Ojo\n> Hay que secarlo.": 0.12,
    "$\\frac{{a_{number}}}{{b}}$": 0.16,
    "![[plano {number}.png]]": 0.10,
}
"""Of notes with each kind of content, as measured in 2,141 notes."""
SHORT = 0.15
SENTENCES = (
    "La humedad del sótano baja cuando se abre el respiradero por la mañana.",
    "El carpintero midió la puerta y dijo que la madera tarda dos semanas.",
    "Apunté en el cuaderno las horas de riego de cada bancal del huerto.",
    "Se acordó pintar la reja antes de que empiecen las lluvias de otoño.",
)


def written(number: int, random: Random, day: datetime) -> tuple[str, str]:
    """Name and text of a note."""
    front = f"---\nfecha: {day:%Y-%m-%d}\n---\n" if random.random() < STATED else ""
    name = f"{day:%Y-%m-%d} nota {number}" if random.random() < NAMED else f"Nota {number}"
    if random.random() < SHORT:
        return name, f"{front}{random.choice(SENTENCES)}"
    parts = [
        part.format(number=number) for part, share in SHARES.items() if random.random() < share
    ]
    text = [" ".join(random.sample(SENTENCES, 3)), *parts]
    return name, front + f"# Nota {number}\n\n" + "\n\n".join(text)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """The vault with its history: two years of commits, and all files copied today."""

    def git(*command: str, day: datetime) -> None:
        dates = {f"GIT_{who}_DATE": day.isoformat() for who in ("AUTHOR", "COMMITTER")}
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.es"]
        subprocess.run(
            ["git", *identity, *command], cwd=tmp_path, env={**os.environ, **dates}, check=True
        )

    random = Random(7)
    git("init", "-q", day=FIRST_DAY)
    for commit in range(COMMITS):
        day = FIRST_DAY + timedelta(days=30 * commit)
        folder = tmp_path / random.choice(("Casa", "Huerto", "Ideas"))
        folder.mkdir(exist_ok=True)
        for number in range(NOTES * commit // COMMITS, NOTES * (commit + 1) // COMMITS):
            name, text = written(number, random, day)
            (folder / f"{name}.md").write_text(text, "utf-8")
        git("add", "-A", day=day)
        git("commit", "-qm", "notas", day=day)
    return tmp_path


def test_a_vault_is_read_at_once_with_its_dates_from_names_and_history(vault: Path) -> None:
    found = survey(vault)
    assert (found.notes, found.rejected_count) == (NOTES, 0)
    assert found.dates["file_modified"] <= NOTES // 10
    assert max(found.months.values()) < NOTES // 2
    assert len(found.months) >= COMMITS - 1
    assert found.languages["es"] == NOTES


def test_what_a_reader_of_the_vault_sees_is_read(vault: Path) -> None:
    """No mark of a callout, link or picture is shown; links and tags are known."""
    notes = [own for own in iter_source(vault) if isinstance(own, NoteRecord)]
    shown = [rendered(own.content) for own in notes]
    assert not any(mark in text for text in shown for mark in ("[[", "[!", "**", ".png"))
    known = (
        sum(bool(read(own.content).links) for own in notes),
        sum(own.tags == ("casa/obra",) for own in notes),
        sum("Hay que secarlo." in text for text in shown),
        sum("$\\frac{a_" in text for text in shown),
    )
    for count, share in zip(known, SHARES.values(), strict=False):
        assert count / NOTES == pytest.approx(share * (1 - SHORT), abs=0.05)
    assert sum(len(text) < 200 for text in shown) / NOTES == pytest.approx(SHORT, abs=0.05)
