"""Embeddings from an Ollama server: batches, prefixes, and checks of the vectors.

Requests and their errors belong in `ollama_client`; the known models and their prefixes in
`registry`.
"""

import threading
from collections.abc import Sequence

import numpy as np

from rag_resources.core.model_names import short_name
from rag_resources.providers.inputs import batches, clean
from rag_resources.providers.ollama_client import (
    CONNECT_TIMEOUT_S,
    DEFAULT_HOST,
    OllamaClient,
    OllamaModel,
)
from rag_resources.providers.prefixes import Prefixes, digest_with_prefixes
from rag_resources.providers.protocols import Embedder, ModelInfo, Vectors
from rag_resources.providers.vectors import unit_vectors

# Batches of 16 texts and more have been reported to give other vectors than single texts
# (ollama/ollama issue 6262); 8 is the largest size reported to be right.
_BATCH_TEXTS = 8
_READ_TIMEOUT_S = 30.0
# Servers answer nothing, or NaN, for a text without tokens.
_BLANK_STAND_IN = "."
# Ollama's default, for a model whose context length it does not report.
_DEFAULT_CONTEXT_TOKENS = 2048


class OllamaEmbedder(OllamaModel, Embedder):
    """An embedding model on an Ollama server.

    Creating one contacts no server. Safe to use from several threads; close it (or use it in a
    `with` statement) to release its connections. Blank texts are embedded as ".". The server
    truncates a text longer than the model's context. Texts are never logged. Calls obey the
    ambient deadline, and are retried as described in `OllamaClient`.

    Args:
        model: Name on the server, such as "nomic-embed-text" or "bge-m3:latest".
        host: Address of the server; credentials in it are sent to the server and never shown.
        query_prefix: Put before each question.
        passage_prefix: Put before each passage.
        dimension: Expected dimension of the vectors; `None` takes that of the first answer.
        similarity_threshold: Cosine under which a passage counts as unrelated, for this model.
        connect_timeout_s: Longest wait for a connection, in seconds.
        read_timeout_s: Longest silence of the server, in seconds.

    Raises:
        InvalidParameterError: `host` is not an address.
    """

    def __init__(
        self,
        model: str,
        *,
        host: str = DEFAULT_HOST,
        query_prefix: str = "",
        passage_prefix: str = "",
        dimension: int | None = None,
        similarity_threshold: float = 0.5,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        read_timeout_s: float = _READ_TIMEOUT_S,
    ) -> None:
        super().__init__(
            OllamaClient(
                model,
                host=host,
                connect_timeout_s=connect_timeout_s,
                read_timeout_s=read_timeout_s,
            )
        )
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._dimension = dimension
        self._dimension_lock = threading.Lock()
        self._similarity_threshold = similarity_threshold
        self._info: ModelInfo | None = None

    @property
    def info(self) -> ModelInfo:
        """The model as the server describes it; the server is asked once.

        Raises:
            ProviderUnavailableError: The server does not answer.
            ModelMissingError: The server lacks the model.
            ProviderError: The server refuses the request.
            InvalidEmbeddingError: A probe does not give a valid vector.
            DeadlineExceededError: The ambient deadline passed.
        """
        # No lock: waiting for one could outlast the deadline, and asking twice does no harm.
        if self._info is None:
            digest = self._client.digest()
            context_tokens = self._context_tokens()
            dimension = self._embed("", [_BLANK_STAND_IN]).shape[1]
            self._info = ModelInfo(
                name=short_name("ollama", self._client.model),
                dimension=dimension,
                provider="ollama",
                digest=digest_with_prefixes(
                    digest,
                    self._client.model,
                    Prefixes(self._query_prefix, self._passage_prefix),
                ),
                similarity_threshold=self._similarity_threshold,
                max_sequence_tokens=context_tokens,
            )
        return self._info

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages.

        Returns:
            `(n_texts, dimension)` float32, rows finite and L2-normalised.

        Raises:
            ProviderUnavailableError: The server does not answer, even after the retries.
            ModelMissingError: The server lacks the model.
            ProviderError: The server refuses the request.
            InvalidEmbeddingError: The number of vectors is wrong, or a vector is not finite, is
                zero, or has another dimension than before.
            DeadlineExceededError: The ambient deadline passed.
        """
        return self._embed(self._passage_prefix, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed questions. Same result and errors as `embed_passages`."""
        return self._embed(self._query_prefix, texts)

    def _embed(self, prefix: str, texts: Sequence[str]) -> Vectors:
        parts: list[Vectors] = []
        for batch in batches(texts, _BATCH_TEXTS):
            inputs = [_not_blank(prefix + clean(text)) for text in batch]
            parts.append(self._embed_batch(inputs))
        if not parts:
            return np.empty((0, self._dimension or 0), dtype=np.float32)
        return np.concatenate(parts)

    def _embed_batch(self, inputs: list[str]) -> Vectors:
        model = self._client.model
        answer = self._client.ask(lambda client: client.embed(model=model, input=inputs))
        # Two concurrent first calls must agree on one dimension, even if the server changes the
        # model between their batches.
        with self._dimension_lock:
            vectors = unit_vectors(
                answer.embeddings, n_texts=len(inputs), dimension=self._dimension, model=model
            )
            self._dimension = vectors.shape[1]
        return vectors

    def _context_tokens(self) -> int:
        model = self._client.model
        details = self._client.ask(lambda client: client.show(model)).modelinfo or {}
        for key, value in details.items():
            if key.endswith(".context_length") and isinstance(value, int) and value > 1:
                return value
        return _DEFAULT_CONTEXT_TOKENS


def _not_blank(text: str) -> str:
    return text if text.strip() else _BLANK_STAND_IN
