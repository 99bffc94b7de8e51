"""The comparison with peers, without the peers: workloads, and the verdicts on targets."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.shuffled import save_shuffled
from benchmarks.peers.workload import load
from benchmarks.squad import SquadQuestion, SquadSet
from rag_resources.core.types import NoteRecord
from rag_resources.core.windows import WindowsConfig, cut_windows, window_text
from tests.embedders import HashEmbedder


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
