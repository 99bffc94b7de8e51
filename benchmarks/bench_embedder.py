"""Speed of the embedded models: `python -m benchmarks.bench_embedder`.

Prints ratios to the machine's own float32 matrix product measured in the same run, since
milliseconds depend on who else uses the cores. OPENBLAS_NUM_THREADS sets the threads.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from rag_resources.providers.embedded_e5 import E5Embedder
from rag_resources.providers.embedded_use import USEEmbedder
from rag_resources.providers.protocols import Embedder

# Multiply-adds of the linear layers, twice: 12 layers of 4 · 384² and 2 · 384 · 1,536 weights.
_FLOP_PER_TOKEN = 12 * 2 * (4 * 384**2 + 2 * 384 * 1536)
_PREFIX_AND_END_TOKENS = 6
_ROUNDS = 5
_SENTENCE = (
    "La fotosíntesis convierte la luz solar en energía química dentro de los cloroplastos de las "
    "plantas verdes; por eso el oxígeno que respiramos depende en gran medida de los bosques. "
)


def fastest_s(function: Callable[[], object]) -> float:
    """Best of several rounds, in seconds, after one to warm up."""
    function()
    times: list[float] = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def sgemm_gflops() -> float:
    """Rate of a 2,048² float32 matrix product, in GFLOP/s."""
    size = 2048
    matrix = np.random.default_rng(0).standard_normal((size, size), dtype=np.float32)
    out = np.empty_like(matrix)
    return float(2 * size**3 / fastest_s(lambda: np.matmul(matrix, matrix, out=out)) / 1e9)


def note(index: int, n_words: int) -> str:
    """A note of about `n_words` words; no two are equal."""
    words = (_SENTENCE * (n_words // 20 + 1)).split()
    return f"{index} " + " ".join(words[: n_words + index % 5 - 2])


def main() -> None:
    """Print the speed of both models, by the length of the texts."""
    e5, use = E5Embedder(), USEEmbedder()
    write = sys.stdout.write
    write(f"BLAS threads: {os.environ.get('OPENBLAS_NUM_THREADS', 'default')}\n")
    start = time.perf_counter()
    e5.embed_queries(["a"])
    write(f"e5 load and first query: {time.perf_counter() - start:.2f} s\n")
    question = ["¿Cómo convierten las plantas la luz en energía?"]
    embedders: list[tuple[str, Embedder]] = [("e5", e5), ("use", use)]
    for name, embedder in embedders:
        query_s = fastest_s(partial(embedder.embed_queries, question))
        write(f"{name} query: {query_s * 1e3:.1f} ms\n")
    for n_words, n_texts in ((12, 256), (60, 64), (300, 16), (3000, 2)):
        texts = [note(index, n_words) for index in range(n_texts)]
        peak = sgemm_gflops()
        e5_s = fastest_s(partial(e5.embed_passages, texts))
        use_s = fastest_s(partial(use.embed_passages, texts))
        n_tokens = sum(e5.count_tokens(texts)) + _PREFIX_AND_END_TOKENS * n_texts
        gflops = n_tokens * _FLOP_PER_TOKEN / e5_s / 1e9
        write(
            f"{n_words:5} words: "
            f"e5 {n_texts / e5_s:6.1f} texts/s, {n_tokens / e5_s:5.0f} tokens/s, "
            f"{gflops:5.1f} of {peak:5.1f} GFLOP/s = {gflops / peak:.0%} of sgemm; "
            f"USE {n_texts / use_s:7.1f} texts/s = {e5_s / use_s:.1f}x e5\n"
        )


if __name__ == "__main__":
    main()
