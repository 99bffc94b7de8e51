"""Speed of the embedded models: `python -m tests.benchmarks.bench_embedder [--runtimes]`.

Prints ratios to the machine's own float32 matrix product measured in the same run, since
milliseconds depend on who else uses the cores. OPENBLAS_NUM_THREADS sets the threads. At the end,
or alone with --runtimes, e5 in OpenVINO is compared with e5 in numpy, in turn in new processes.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np

from rag_resources.providers.embedded_e5 import E5Embedder
from rag_resources.providers.embedded_use import USEEmbedder
from rag_resources.providers.protocols import Embedder

# Multiply-adds of the linear layers, twice: 12 layers of 4 · 384² and 2 · 384 · 1,536 weights.
_FLOP_PER_TOKEN = 12 * 2 * (4 * 384**2 + 2 * 384 * 1536)
_PREFIX_AND_END_TOKENS = 6
_ROUNDS = 5
_TEXTS, _WORDS, _TURNS = 64, 75, 3
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


def embed_in(runtime: str) -> None:
    """Embed the passages with one runtime, and print the seconds: of the clock, of processors."""
    if runtime == "numpy":
        sys.modules["openvino"] = None  # type: ignore[assignment]
    e5, texts = E5Embedder(), [note(index, _WORDS) for index in range(_TEXTS)]
    e5.embed_passages(texts[:8])
    clock, processor = time.perf_counter(), time.process_time()
    e5.embed_passages(texts)
    spent = [time.perf_counter() - clock, time.process_time() - processor]
    sys.stdout.write(json.dumps({"runtime": e5.runtime, "spent": spent}))


def compare_runtimes() -> None:
    """Print how many times as fast as numpy OpenVINO embeds passages."""
    spent: dict[str, list[list[float]]] = {"openvino": [], "numpy": []}
    for runtime in list(spent) * _TURNS:
        command = [sys.executable, "-m", "tests.benchmarks.bench_embedder", "--embed", runtime]
        told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        spent[runtime].append(told["spent"])
        if len(spent[runtime]) == 1:
            sys.stdout.write(f"{runtime}: {told['runtime']}\n")
    per_s = {
        runtime: [_TEXTS / median(own) for own in zip(*turns, strict=True)]
        for runtime, turns in spent.items()
    }
    for number, second in enumerate(("of the clock", "of processor time")):
        own, reference = per_s["openvino"][number], per_s["numpy"][number]
        sys.stdout.write(
            f"passages of {_WORDS} words a second {second}: OpenVINO {own:.1f}, "
            f"numpy {reference:.1f}: {own / reference:.1f} times as many\n"
        )


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--embed"]:
        embed_in(sys.argv[2])
        return
    if sys.argv[1:] != ["--runtimes"]:
        measure()
    compare_runtimes()


def measure() -> None:
    """Print the speed of both models, by the length of the texts."""
    e5, use = E5Embedder(), USEEmbedder()
    write = sys.stdout.write
    write(f"e5: {e5.runtime}; USE: {use.runtime}\n")
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
