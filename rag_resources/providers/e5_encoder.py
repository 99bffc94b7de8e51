"""The transformer of multilingual-e5-small in float32 numpy: packed tokens in, mean states out.

It is used on platforms without an OpenVINO package (macOS on Intel), and as the reference in tests
of `e5_openvino`.

Speed comes from three things: the tokens of all windows share one matrix per linear layer, so no
padding is computed; GELU is vectorised passes over a block that fits the cache, 7x faster than
`scipy.special.erf`; and 4-bit word embeddings are dequantised only for the tokens that occur.
"""

from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from rag_resources.providers.e5_weights import FloatArray, Weights, dequantise

# Rows of the feed-forward layer worked on at a time: 32 rows of 1,536 float32 and two scratch
# arrays fit a 1 MB second-level cache.
_GELU_ROWS = 32
_FEED_FORWARD_ROWS = 512
# Attention scores worked on at a time, in elements: 1.2 MB.
_SCORES_BUDGET = 300_000

# tanh(x * p(x²)) = erf(x / √2): minimax fit over |x| <= 5.6 of the error in GELU, which stays
# under 6e-7 everywhere in float32 (a test checks it). Lowest degree first.
_GELU_FIT = tuple(
    np.float32(coefficient)
    for coefficient in (
        0.7978842683908387,
        0.036334149172834646,
        -3.3026743068213424e-05,
        -5.527337416408673e-05,
        3.9740690333309675e-06,
        -1.33783091785928e-07,
        1.8139248563523858e-09,
    )
)
_GELU_FIT_END = np.float32(5.6**2)


def gelu(x: FloatArray, squares: FloatArray, phi: FloatArray) -> None:
    """Apply the exact (erf) GELU in place.

    Args:
        x: Any shape, float32; overwritten.
        squares: Scratch of the same shape.
        phi: Scratch of the same shape.
    """
    np.multiply(x, x, out=squares)
    np.minimum(squares, _GELU_FIT_END, out=squares)
    np.multiply(squares, _GELU_FIT[-1], out=phi)
    for coefficient in _GELU_FIT[-2:0:-1]:
        phi += coefficient
        phi *= squares
    phi += _GELU_FIT[0]
    phi *= x
    np.tanh(phi, out=phi)
    phi += np.float32(1.0)
    x *= np.float32(0.5)
    x *= phi


@dataclass(frozen=True)
class _Norm:
    weight: FloatArray
    bias: FloatArray
    epsilon: float

    def apply(self, x: FloatArray) -> None:
        """Normalise the rows of `x` in place."""
        x -= x.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", x, x) / np.float32(x.shape[1])
        x *= (1.0 / np.sqrt(variance + np.float32(self.epsilon)))[:, None]
        x *= self.weight
        x += self.bias


@dataclass(frozen=True)
class _Layer:
    qkv: FloatArray
    qkv_bias: FloatArray
    out: FloatArray
    out_bias: FloatArray
    attention_norm: _Norm
    up: FloatArray
    up_bias: FloatArray
    down: FloatArray
    down_bias: FloatArray
    output_norm: _Norm


class E5Encoder:
    """Turns windows of token ids into their mean hidden state.

    Immutable after construction, so any number of threads may share one. Holds 85 MB of
    float32; the 54 MB of 4-bit word embeddings stay mapped from disk.

    Args:
        weights: A parsed weight file.
    """

    def __init__(self, weights: Weights) -> None:
        self.hidden = weights.hidden
        self._n_heads = weights.n_heads
        self._words = weights.rows_4bit("emb.word")
        positions = weights.vector("emb.pos").reshape(-1, self.hidden)
        # Every token is of type 0, so the first row of the type embeddings belongs to all.
        self._positions = positions + weights.vector("emb.type")[: self.hidden]
        self._embedding_norm = _read_norm(weights, "emb.ln")
        self._layers = [_read_layer(weights, index) for index in range(weights.n_layers)]

    def mean_states(self, ids: npt.NDArray[np.int64], lengths: list[int]) -> FloatArray:
        """Encode windows and average each one's token states.

        Args:
            ids: `(sum(lengths),)` token ids of the windows one after another, start and end
                tokens included.
            lengths: Tokens of each window, 1 to `max_positions`. Neighbours of equal length
                share their attention's matrix products, so sorted lengths are fastest.

        Returns:
            `(n_windows, hidden)` float32, not normalised. Working memory is about 15 kB a token.
        """
        x = self._embed(ids, lengths)
        context = np.empty_like(x)
        for layer in self._layers:
            qkv = x @ layer.qkv
            qkv += layer.qkv_bias
            start = 0
            for length, run in groupby(lengths):
                stop = start + length * sum(1 for _ in run)
                self._attend(qkv[start:stop], length, context[start:stop])
                start = stop
            x += context @ layer.out
            x += layer.out_bias
            layer.attention_norm.apply(x)
            _feed_forward(x, layer)
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        sums: FloatArray = np.add.reduceat(x, starts, axis=0)
        sums /= np.asarray(lengths, dtype=np.float32)[:, None]
        return sums

    def after_fork(self) -> None:
        """Does nothing, since it has no threads."""

    def _embed(self, ids: npt.NDArray[np.int64], lengths: list[int]) -> FloatArray:
        unique, inverse = np.unique(ids, return_inverse=True)
        x = dequantise(self._words[unique]).reshape(-1, self.hidden)[inverse]
        start = 0
        for length in lengths:
            x[start : start + length] += self._positions[:length]
            start += length
        self._embedding_norm.apply(x)
        return x

    def _attend(self, qkv: FloatArray, length: int, context: FloatArray) -> None:
        """Attend within each of the equally long windows of `qkv`, `(n * length, 3 * hidden)`."""
        n_heads = self._n_heads
        split = qkv.reshape(-1, length, 3, n_heads, self.hidden // n_heads)
        outputs = context.reshape(-1, length, n_heads, self.hidden // n_heads)
        n_fitting = max(1, _SCORES_BUDGET // length**2)
        n_windows = max(1, n_fitting // n_heads)
        n_heads_at_once = min(n_heads, n_fitting)
        for window in range(0, split.shape[0], n_windows):
            for head in range(0, n_heads, n_heads_at_once):
                part = split[window : window + n_windows, :, :, head : head + n_heads_at_once]
                query, key, value = part.transpose(2, 0, 3, 1, 4)
                scores = query @ key.swapaxes(-1, -2)
                scores -= scores.max(axis=-1, keepdims=True)
                np.exp(scores, out=scores)
                totals = scores.sum(axis=-1, keepdims=True)
                output = outputs[window : window + n_windows, :, head : head + n_heads_at_once]
                output = output.transpose(0, 2, 1, 3)
                np.matmul(scores, value, out=output)
                # Dividing the sums instead of the scores touches length / 32 times fewer numbers.
                output /= totals


def _feed_forward(x: FloatArray, layer: _Layer) -> None:
    """Replace the rows of `x` by the normalised sum of them and the feed-forward layer."""
    squares = np.empty((_GELU_ROWS, layer.up.shape[1]), dtype=np.float32)
    phi = np.empty_like(squares)
    for start in range(0, x.shape[0], _FEED_FORWARD_ROWS):
        rows = x[start : start + _FEED_FORWARD_ROWS]
        inner = rows @ layer.up
        for low in range(0, inner.shape[0], _GELU_ROWS):
            block = inner[low : low + _GELU_ROWS]
            block += layer.up_bias
            gelu(block, squares[: len(block)], phi[: len(block)])
        rows += inner @ layer.down
        rows += layer.down_bias
        layer.output_norm.apply(rows)


def _read_norm(weights: Weights, name: str) -> _Norm:
    return _Norm(weights.vector(f"{name}.w"), weights.vector(f"{name}.b"), weights.epsilon)


def _read_layer(weights: Weights, index: int) -> _Layer:
    hidden = weights.hidden
    name = f"l{index}"
    qkv = np.concatenate([weights.matrix(f"{name}.{part}.w", hidden) for part in "qkv"], axis=1)
    qkv_bias = np.concatenate([weights.vector(f"{name}.{part}.b") for part in "qkv"])
    # Attention scores are scaled by 1 / √(head size): folded into the queries' weights once.
    scale = np.float32((hidden // weights.n_heads) ** -0.5)
    qkv[:, :hidden] *= scale
    qkv_bias[:hidden] *= scale
    up_bias = weights.vector(f"{name}.fi.b")
    return _Layer(
        qkv=qkv,
        qkv_bias=qkv_bias,
        out=weights.matrix(f"{name}.ao.w", hidden),
        out_bias=weights.vector(f"{name}.ao.b"),
        attention_norm=_read_norm(weights, f"{name}.aln"),
        up=weights.matrix(f"{name}.fi.w", hidden),
        up_bias=up_bias,
        down=weights.matrix(f"{name}.fo.w", len(up_bias)),
        down_bias=weights.vector(f"{name}.fo.b"),
        output_norm=_read_norm(weights, f"{name}.oln"),
    )
