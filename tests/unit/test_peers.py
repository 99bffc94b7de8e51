"""The comparison with peers, without the peers: workloads, and the verdicts on targets."""

from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from rag_resources.core.types import NoteRecord
from rag_resources.core.windows import WindowsConfig, cut_windows, window_text
from rag_resources.ingestion.squad import SquadDataset, SquadQuestion
from tests.benchmarks.peers.contender import ALIKE, OURS, WINDOWED
from tests.benchmarks.peers.peer_tables import Quality, Results, Speed, peer_tables
from tests.benchmarks.peers.running import Killed
from tests.benchmarks.peers.shuffled import save_shuffled
from tests.benchmarks.peers.turns_targets import Measured, targets_table
from tests.benchmarks.peers.workload import BenchNote, Passage, Question, load, save, vector_key
from tests.embedders import HashEmbedder

CAREFUL = "langchain_careful"
DEFAULT = "langchain"
METRICS = ("hit_rate_at_10", "mrr", "ndcg_at_10")


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


def test_targets_are_judged_against_the_best_careful_peer() -> None:
    """A default that is faster does not count."""
    speed = Speed(
        2_000,
        {
            OURS: _speed(ingest_s=2.0, again_s=0.5, latency_ms=10.0, throughput=100.0),
            CAREFUL: _speed(ingest_s=8.0, again_s=5.0, latency_ms=20.0, throughput=50.0),
            DEFAULT: _speed(ingest_s=1.0, again_s=0.1, latency_ms=1.0, throughput=500.0),
        },
    )

    targets = peer_tables({}, Results([], [speed], {}))[-1]

    assert [(measured, met) for _, measured, met in targets.rows] == [
        ("4.00", "yes"),
        ("10.00", "NO"),
        ("0.50", "NO"),
        ("2.00", "NO"),
    ]


def test_quality_must_reach_every_peer_and_be_above_every_default() -> None:
    ours, worse = _metrics(1.0, 40), _metrics(0.5, 40)
    measured = {OURS: ours, CAREFUL: ours, DEFAULT: worse}
    latencies_ms = {name: [1.0] for name in measured}
    quality = Quality("1 paragraph", 40, measured, {name: {} for name in measured}, latencies_ms)

    targets = peer_tables({}, Results([quality], [], {}))[-1]

    assert [(measured, met) for _, measured, met in targets.rows] == [
        ("+0.0000 against LangChain, careful", "yes"),
        ("1 of 1", "yes"),
    ]


def test_what_a_kill_leaves_is_told_by_what_is_wrong_afterwards() -> None:
    speed = Speed(2_000, {CAREFUL: _speed(1.0, 1.0, 1.0, 1.0)})
    killed = [Killed(0, "", 0, 0), Killed(700, "", 0, 700), Killed(1_900, "JSONDecodeError", 9, 0)]

    reruns = next(
        table
        for table in peer_tables({}, Results([], [speed], {CAREFUL: killed}))
        if "SIGKILL" in table.title
    )

    assert list(reruns.rows) == [
        (
            "LangChain, careful",
            "right",
            "0, 700, 1,900",
            "right; 700 twice; JSONDecodeError, 9 missing",
        )
    ]


def _speed(
    ingest_s: float, again_s: float, latency_ms: float, throughput: float
) -> dict[str, object]:
    return {
        "ingest_s": ingest_s,
        "again_s": again_s,
        "again_error": "",
        "latencies_ms": [latency_ms],
        "throughput": throughput,
        "failures": {},
        "before_mb": 1.0,
        "peak_mb": 2.0,
        "after_again": {"stored": 2_000, "missing": 0, "surplus": 0},
    }


def _metrics(value: float, questions: int) -> dict[UUID, dict[str, float]]:
    return {UUID(int=number): dict.fromkeys(METRICS, value) for number in range(questions)}


def test_targets_of_turns_are_ratios_to_the_best_peer_of_the_same_run() -> None:
    """A target that was not measured is left out; the product's other commit is no peer."""
    measured = {
        ALIKE: Measured(p95_ms=6.0, rate=300.0, ingest_s=2.0),
        WINDOWED: Measured(p95_ms=8.0, rate=120.0, ingest_s=None),
        "before": Measured(p95_ms=1.0, rate=999.0, ingest_s=0.1),
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
    question = SquadQuestion("¿Quién vino?", "Uno", ("0",), ())

    save_shuffled(tmp_path, 40, SquadDataset(notes, [question], []), HashEmbedder())
    read = load(tmp_path)

    assert len(read.passages) >= 40
    known = {"Uno vino.", "Dos se fueron.", "Llovió mucho.", "Nadie salió de casa.", "Fue ayer."}
    for note in read.notes:
        assert {f"{text}." for text in note.content.rstrip(".").split(". ")} <= known
    origins = HashEmbedder().embed_passages(paragraphs)
    with_windows = load(tmp_path, windows=True).vectors
    for passage in read.passages:
        cut = cut_windows(passage.text, WindowsConfig())
        windows = [window_text("Título", passage.text[span.start : span.end]) for span in cut]
        for vector in with_windows.passages([passage.text, *windows]):
            assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
            assert (origins @ vector).max() > 0.5
        assert np.array_equal(
            read.vectors.passages([passage.text])[0], with_windows.passages([passage.text])[0]
        )
        with pytest.raises(KeyError):
            read.vectors.passages(windows)
    assert [item.text for item in read.questions] == ["¿Quién vino?"]
    assert read.vectors.questions(["¿Quién vino?"]).shape == (1, origins.shape[1])
