"""The comparison with peers, without the peers: workloads, and the verdicts on targets."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.contender import ALIKE, WINDOWED
from benchmarks.peers.shuffled import save_shuffled
from benchmarks.peers.turns_targets import Measured, targets_table
from benchmarks.peers.workload import BenchNote, Passage, Question, load, save, vector_key
from benchmarks.squad import SquadQuestion, SquadSet
from rag_resources.core.types import NoteRecord
from rag_resources.core.windows import WindowsConfig, cut_windows, window_text
from tests.embedders import HashEmbedder

CAREFUL = "langchain_careful"


def test_a_workload_is_read_as_it_was_saved(tmp_path: Path) -> None:
    note = BenchNote("n1", "Título", "Uno. Dos.", "2024-01-01T00:00:00+00:00")
    passage, question = Passage("n1/0", "n1", "Uno."), Question("¿Uno?", ("n1",))
    row = np.array([0.6, 0.8], dtype=np.float32)
    vectors = {vector_key("Uno.", question=False): row, vector_key("¿Uno?", question=True): -row}

    save(tmp_path, {"name": "m"}, [note], [passage], [question], vectors)
    read = load(tmp_path)

    assert (read.notes, read.passages, read.questions) == ([note], [passage], [question])
    assert read.vectors.passages(["Uno."]).tolist() == [row.tolist()]
    assert read.vectors.questions(["¿Uno?"]).tolist() == [(-row).tolist()]


def test_a_text_without_a_vector_is_an_error_that_does_not_show_it(tmp_path: Path) -> None:
    """Otherwise a contender that embeds something else would be measured with nonsense."""
    save(tmp_path, {}, [], [], [], {vector_key("Uno.", question=False): np.zeros(2)})

    with pytest.raises(KeyError, match="question of 4 characters") as missed:
        load(tmp_path).vectors.questions(["Uno."])

    assert "Uno" not in str(missed.value)


def test_targets_of_turns_are_ratios_to_the_best_peer_of_the_same_run() -> None:
    """A target that was not measured is left out, and a default is no careful peer."""
    measured = {
        ALIKE: Measured(p95_ms=6.0, rate=300.0, ingest_s=2.0),
        WINDOWED: Measured(p95_ms=8.0, rate=120.0, ingest_s=None),
        "langchain": Measured(p95_ms=1.0, rate=999.0, ingest_s=0.1),
        CAREFUL: Measured(p95_ms=10.0, rate=100.0, ingest_s=4.0),
        "llama_index_careful": Measured(p95_ms=16.0, rate=150.0, ingest_s=None),
    }

    small, large = (targets_table("2", size, measured).rows for size in (2_000, 100_000))

    assert [(row[2], row[3]) for row in small] == [
        ("0.60", "NO"),
        ("2.00", "yes"),
        ("2.00", "yes"),
        ("0.80", "NO"),
        ("0.80", "NO"),
    ]
    assert [row[3] for row in large] == ["yes", "yes", "yes", "yes", "NO"]
    assert targets_table("2", 2_000, {ALIKE: measured[ALIKE]}).rows == ()


def test_shuffled_notes_are_whole_sentences_near_their_paragraphs(tmp_path: Path) -> None:
    """Every passage of the corpus, and each of its windows, has a vector near its paragraphs'."""
    created_at = datetime(2024, 1, 1, tzinfo=UTC)
    paragraphs = ["Uno vino. Dos se fueron.", "Llovió mucho. Nadie salió de casa. Fue ayer."]
    notes = [
        NoteRecord(str(number), "Título", text, created_at)
        for number, text in enumerate(paragraphs)
    ]
    question = SquadQuestion("¿Quién vino?", (("0", 0, "Uno"),))

    save_shuffled(tmp_path, 40, SquadSet(notes, [question]), HashEmbedder())
    read = load(tmp_path)

    assert len(read.passages) >= 40
    known = {"Uno vino.", "Dos se fueron.", "Llovió mucho.", "Nadie salió de casa.", "Fue ayer."}
    for note in read.notes:
        assert {f"{text}." for text in note.content.rstrip(".").split(". ")} <= known
    origins = HashEmbedder().embed_passages(paragraphs)
    for passage in read.passages:
        cut = cut_windows(passage.text, WindowsConfig())
        windows = [window_text("Título", passage.text[span.start : span.end]) for span in cut]
        for vector in read.vectors.passages([passage.text, *windows]):
            assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
            assert (origins @ vector).max() > 0.5
    assert [item.text for item in read.questions] == ["¿Quién vino?"]
    assert read.vectors.questions(["¿Quién vino?"]).shape == (1, origins.shape[1])
