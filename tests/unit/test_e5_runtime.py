"""The runtime of e5: OpenVINO against a reference, its tensor file, forks, no telemetry."""

import dataclasses
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import pytest

from rag_resources.core.errors import ModelMissingError
from rag_resources.providers import e5_openvino, e5_tensors, embedded_e5
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


def test_a_vector_is_the_same_in_every_batch() -> None:
    texts = texts_of_the_sample()[::12] + ODD_TEXTS
    e5 = E5Embedder()
    together = e5.embed_passages(texts)
    reversed_order = e5.embed_passages(texts[::-1])[::-1]
    alone = np.concatenate([e5.embed_passages([text]) for text in texts])
    assert np.abs(together - alone).max() < 1e-4
    assert np.abs(together - reversed_order).max() < 1e-4


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
    first = e5_tensors.load_tensors(weights, DIGEST)
    (path,) = cache.iterdir()
    assert path == e5_tensors.tensor_file(DIGEST)
    written = path.stat()
    again = e5_tensors.load_tensors(weights, DIGEST)
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (written.st_mtime_ns, written.st_ino)
    assert first.keys() == again.keys()
    for name in ("emb.ln.w", "l0.qkv.w", "l11.fo.w", "l11.oln.b"):
        np.testing.assert_array_equal(first[name], again[name])
    np.testing.assert_array_equal(first["l3.ao.w"], weights.matrix("l3.ao.w", 384).T)


@pytest.mark.parametrize("damage", ["empty", "short", "long", "bit", "checksum"])
def test_a_damaged_file_is_made_again(weights: Weights, cache: Path, damage: str) -> None:
    expected = e5_tensors.load_tensors(weights, DIGEST)["l11.oln.b"].copy()
    path = e5_tensors.tensor_file(DIGEST)
    data = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "short": data[:-1000],
            "long": data + b"x",
            "bit": data[:9999] + bytes([data[9999] ^ 1]) + data[10_000:],
            "checksum": data[:-1] + bytes([data[-1] ^ 1]),
        }[damage]
    )
    found = e5_tensors.load_tensors(weights, DIGEST)
    np.testing.assert_array_equal(found["l11.oln.b"], expected)
    assert path.read_bytes() == data
    assert list(cache.iterdir()) == [path]


def test_a_process_killed_while_writing_leaves_nothing_that_harms(
    weights: Weights, cache: Path
) -> None:
    """If killed at any moment, the file is complete or missing; remains are deleted."""
    code = (
        "import sys, platformdirs, pathlib\n"
        "platformdirs.user_cache_path = lambda name: pathlib.Path(sys.argv[1])\n"
        "from rag_resources.providers import e5_tensors as t, e5_weights as w\n"
        "weights = w.read_weights(w.weights_path())\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    t._write(t.tensor_file(sys.argv[2]), t._join(weights))\n"
    )
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(cache), DIGEST], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        while not list(cache.glob("*.tmp")):
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    left = list(cache.glob("*.tmp"))
    assert left
    for path in left:
        os.utime(path, (time.time() - 7200,) * 2)
    e5_tensors.tensor_file(DIGEST).unlink(missing_ok=True)
    assert len(e5_tensors.load_tensors(weights, DIGEST)) == 2 + 12 * 12
    assert list(cache.iterdir()) == [e5_tensors.tensor_file(DIGEST)]
