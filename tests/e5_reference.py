"""multilingual-e5-small in plain float32 numpy: the reference for tests of `e5_openvino`."""

from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.special import erf

from rag_resources.providers.e5_weights import FloatArray, Weights, dequantise


class E5Reference:
    """Computes one window after another, as slowly and plainly as the formulas are written."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._vector = cache(weights.vector)

    def mean_states(self, ids: npt.NDArray[np.int64], lengths: list[int]) -> FloatArray:
        """As `OpenVinoEncoder.mean_states`."""
        windows = np.split(ids, np.cumsum(lengths)[:-1])
        return np.stack([self._states(window).mean(axis=0) for window in windows])

    def _states(self, ids: npt.NDArray[np.int64]) -> FloatArray:
        weights, hidden = self._weights, self._weights.hidden
        x = dequantise(weights.rows_4bit("emb.word")[ids]).reshape(len(ids), hidden)
        x += weights.vector("emb.pos").reshape(-1, hidden)[: len(ids)]
        x = self._norm("emb.ln", x + weights.vector("emb.type")[:hidden])
        for layer in range(weights.n_layers):
            attended = self._linear(f"l{layer}.ao", self._attention(f"l{layer}", x))
            x = self._norm(f"l{layer}.aln", x + attended)
            inner = self._linear(f"l{layer}.fi", x)
            inner *= (1 + erf(inner / np.sqrt(np.float32(2)))) / 2
            x = self._norm(f"l{layer}.oln", x + self._linear(f"l{layer}.fo", inner))
        return x

    def _attention(self, layer: str, x: FloatArray) -> FloatArray:
        heads = (len(x), self._weights.n_heads, -1)
        query, key, value = (
            self._linear(f"{layer}.{part}", x).reshape(heads).swapaxes(0, 1) for part in "qkv"
        )
        scores = np.exp(query @ key.swapaxes(1, 2) / np.sqrt(np.float32(query.shape[2])))
        means: FloatArray = scores / scores.sum(axis=2, keepdims=True) @ value
        return means.swapaxes(0, 1).reshape(x.shape)

    def _linear(self, name: str, x: FloatArray) -> FloatArray:
        product: FloatArray = x @ self._vector(f"{name}.w").reshape(-1, x.shape[1]).T
        return product + self._weights.vector(f"{name}.b")

    def _norm(self, name: str, x: FloatArray) -> FloatArray:
        deviation = np.sqrt(x.var(axis=1, keepdims=True) + np.float32(self._weights.epsilon))
        normal: FloatArray = (x - x.mean(axis=1, keepdims=True)) / deviation
        return normal * self._weights.vector(f"{name}.w") + self._weights.vector(f"{name}.b")
