"""The runtime of e5: OpenVINO against a reference, its tensor file, forks, no telemetry."""

import dataclasses
import multiprocessing
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pytest

from rag_resources.core.errors import ModelMissingError
from rag_resources.providers import e5_openvino, embedded_e5
from rag_resources.providers.e5_openvino import OpenVinoEncoder
from rag_resources.providers.e5_weights import Weights, read_weights, weights_path
from rag_resources.providers.embedded_e5 import E5Embedder
from rag_resources.providers.protocols import Vectors
from rag_resources.settings import SAMPLE
from tests.e5_reference import E5Reference

ROOT = Path(__file__).parents[2]
DIGEST = "1571fc9827503943"
"""Of the weights with which all vectors were made that are stored anywhere."""

ODD_TEXTS = [
    "",
    " \n\t",
    "\0",
    "a",
    "…",
    "🍝",
    "👨‍👩‍👧‍👦" * 30,
    "𓀀𓀁𓂀",
    "日本語のテキスト",
    "\ud800x",
    "0" * 700,
    "ñ" * 90,
    "https://example.com/?a=b&c=d#e",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "<unk> <s> </s>",
]


@pytest.fixture(scope="module")
def weights() -> Weights:
    return read_weights(weights_path())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, empty, here and in processes started from here."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)
    return tmp_path / "brain-sync-rag"


def texts_of_the_sample() -> list[str]:
    notes = sorted((SAMPLE / "notes").rglob("*.md"))
    sentences = [
        part.strip()
        for note in notes
        for part in re.split(r"(?<=[.?!])\s+|\n+", note.read_text(encoding="utf-8"))
        if 0 < len(part.strip()) < 90
    ]
    return [*sentences[:: len(sentences) // 980], *(note.read_text() for note in notes[:10])]


def embed_with_numpy(weights: Weights, texts: list[str]) -> Vectors:
    shared = embedded_e5._SHARED
    model = shared.get()
    reference: Any = E5Reference(weights)
    shared._model = dataclasses.replace(model, encoder=reference)
    try:
        return E5Embedder().embed_passages(texts)
    finally:
        shared._model = model


def test_vectors_made_before_stay_valid(weights: Weights) -> None:
    """The same digest promises the same vectors: sentences, long notes, odd texts."""
    texts = (texts_of_the_sample() + ODD_TEXTS)[-1000:]
    assert len(texts) == 1000
    e5 = E5Embedder()
    now = e5.embed_passages(texts)
    before = embed_with_numpy(weights, texts)
    assert (now * before).sum(axis=1).min() >= 0.9999
    assert e5.info.digest == DIGEST


def test_float32_is_exact(weights: Weights, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a processor without bfloat16 computes."""
    monkeypatch.setattr(e5_openvino, "preferred_precision", lambda core: "f32")
    encoder = OpenVinoEncoder(weights, DIGEST)
    lengths = [3, 17, 40, 512]
    ids = np.random.default_rng(5).integers(10, 200_000, sum(lengths))
    expected = E5Reference(weights).mean_states(ids, lengths)
    np.testing.assert_allclose(encoder.mean_states(ids, lengths), expected, atol=2e-5)


def test_every_process_makes_the_same_bytes() -> None:
    code = (
        "import zlib; from rag_resources.providers.embedded_e5 import E5Embedder\n"
        "print(zlib.crc32(E5Embedder().embed_passages(['El perro corre.', 'Llueve. ' * 300])))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True
        ).stdout
        for _ in range(2)
    }
    here = E5Embedder().embed_passages(["El perro corre.", "Llueve. " * 300])
    assert found == {f"{zlib.crc32(here)}\n".encode()}


def test_without_openvino_one_error_says_what_to_use(
    weights: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ModelMissingError) as raised:
        OpenVinoEncoder(weights, DIGEST)
    assert (
        raised.value.message.msgid
        == "The embedded model e5_small has no runtime on this computer (macOS on Intel). Install "
        "Ollama (https://ollama.com) and put one of its models into EMBEDDING_MODELS."
    )


def _embed_in_child(connection: "multiprocessing.connection.Connection") -> None:
    connection.send_bytes(E5Embedder().embed_passages(["uno", "dos " * 400]).tobytes())


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_process_embeds() -> None:
    """With the model loaded, its lock held by another thread, and a grandchild."""
    expected = E5Embedder().embed_passages(["uno", "dos " * 400]).tobytes()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    with embedded_e5._SHARED._lock:
        process = context.Process(target=_embed_in_child, args=(theirs,))
        process.start()
    assert ours.poll(120)
    assert ours.recv_bytes() == expected
    process.join(60)
    assert process.exitcode == 0
    assert E5Embedder().embed_passages(["uno", "dos " * 400]).tobytes() == expected


def test_no_socket_is_opened(tmp_path: Path) -> None:
    """OpenVINO brings a telemetry package, which must stay silent, also in a new home."""
    code = (
        "import sys, threading; events = []\n"
        "sys.addaudithook(lambda name, given: events.append(name))\n"
        "from rag_resources.providers.embedded_e5 import E5Embedder\n"
        "E5Embedder().embed_queries(['hola'])\n"
        "assert 'openvino' in sys.modules and 'open' in events\n"
        # It would send from a thread of its own.
        "[each.join(5) for each in threading.enumerate() if each is not threading.main_thread()]\n"
        "silent = ('socket.', 'urllib.', 'http.', 'subprocess.', 'os.system', 'os.posix_spawn')\n"
        "sys.exit(', '.join(name for name in events if name.startswith(silent)) or None)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert (process.stderr, process.returncode) == ("", 0)
    assert not (tmp_path / "intel").exists(), "its files"


def test_the_file_is_made_once(weights: Weights, cache: Path) -> None:
    e5_openvino.load_graph(weights, DIGEST)
    path = e5_openvino.graph_file(DIGEST)
    assert set(cache.iterdir()) == {path, path.with_suffix(".bin")}
    written = path.stat()
    e5_openvino.load_graph(weights, DIGEST)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (written.st_mtime_ns, written.st_ino)


@pytest.mark.parametrize("part", [".xml", ".bin"])
@pytest.mark.parametrize("kept", [0, 100_000])
def test_a_damaged_file_is_made_again(weights: Weights, cache: Path, part: str, kept: int) -> None:
    e5_openvino.load_graph(weights, DIGEST)
    path = e5_openvino.graph_file(DIGEST).with_suffix(part)
    path.write_bytes(path.read_bytes()[:kept])
    e5_openvino.load_graph(weights, DIGEST)
    assert path.stat().st_size > 200_000
    assert len(list(cache.iterdir())) == 2


def test_without_a_folder_to_write_to_it_works_all_the_same(weights: Weights, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    assert len(e5_openvino.load_graph(weights, DIGEST).inputs) == 2
