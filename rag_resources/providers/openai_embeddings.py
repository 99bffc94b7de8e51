"""Embeddings from an OpenAI-compatible server: batches, prefixes, and checks of the vectors.

Requests and their errors belong in `openai_client`; the known models and their prefixes in
`registry`.
"""

import threading
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, SecretStr

from rag_resources.core.configuration import canonical_hash
from rag_resources.core.model_names import short_name
from rag_resources.providers.inputs import batches, clean
from rag_resources.providers.openai_client import OpenAIClient, OpenAIModel
from rag_resources.providers.prefixes import Prefixes
from rag_resources.providers.protocols import Embedder, ModelInfo, Vectors
from rag_resources.providers.vectors import unit_vectors

_BATCH_TEXTS = 100
_READ_TIMEOUT_S = 60.0
# Servers refuse a text without tokens.
_BLANK_STAND_IN = "."
# The protocol does not tell a model's context length; this is that of OpenAI's own models.
_CONTEXT_TOKENS = 8_191


class _Item(BaseModel):
    index: int
    embedding: list[float]


class _Embeddings(BaseModel):
    data: list[_Item]


class OpenAIEmbedder(OpenAIModel, Embedder):
    """An embedding model on an OpenAI-compatible server, of any dimension.

    Creating one contacts no server. Safe to use from several threads; close it (or use it in a
    `with` statement) to release its connections. Blank texts are embedded as ".". The server
    refuses a text longer than the model's context. Texts are never logged. Calls obey the ambient
    deadline, and are retried as described in `OpenAIClient`.

    The protocol has no digest of a model's weights. So the digest here covers only its name and
    prefixes: give new weights a new name.

    Args:
        model: Name on the server.
        base_url: Address of the server, up to the version.
        api_key: The server's key, if it requires one.
        prefixes: Put before each question and each passage.
        similarity_threshold: Cosine under which a passage counts as unrelated, for this model.

    Raises:
        InvalidParameterError: `base_url` is not an HTTP address.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: SecretStr | None = None,
        prefixes: Prefixes = Prefixes(),  # noqa: B008 - immutable
        similarity_threshold: float = 0.5,
    ) -> None:
        super().__init__(
            OpenAIClient(model, base_url=base_url, api_key=api_key, read_timeout_s=_READ_TIMEOUT_S)
        )
        self._prefixes = prefixes
        self._similarity_threshold = similarity_threshold
        self._dimension: int | None = None
        self._dimension_lock = threading.Lock()

    @property
    def info(self) -> ModelInfo:
        """The model; the server is asked for a vector once, to know their dimension.

        Raises:
            ProviderUnavailableError: The server does not answer.
            ModelMissingError: The server lacks the model.
            ProviderError: The server refuses the request.
            InvalidEmbeddingError: A probe does not give a valid vector.
            DeadlineExceededError: The ambient deadline passed.
        """
        # No lock: waiting for one could outlast the deadline, and asking twice does no harm.
        dimension = self._dimension or self._embed("", [_BLANK_STAND_IN]).shape[1]
        return ModelInfo(
            name=short_name("openai", self._client.model),
            dimension=dimension,
            provider="openai",
            digest=canonical_hash([self._client.model, *self._prefixes]),
            similarity_threshold=self._similarity_threshold,
            max_sequence_tokens=_CONTEXT_TOKENS,
        )

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
        return self._embed(self._prefixes.passage, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed questions. Same result and errors as `embed_passages`."""
        return self._embed(self._prefixes.query, texts)

    def _embed(self, prefix: str, texts: Sequence[str]) -> Vectors:
        cleaned = [prefix + clean(text) for text in texts]
        inputs = [text if text.strip() else _BLANK_STAND_IN for text in cleaned]
        parts = [self._embed_batch(list(batch)) for batch in batches(inputs, _BATCH_TEXTS)]
        if not parts:
            return np.empty((0, self._dimension or 0), dtype=np.float32)
        return np.concatenate(parts)

    def _embed_batch(self, inputs: list[str]) -> Vectors:
        model = self._client.model
        body = {"model": model, "input": inputs, "encoding_format": "float"}
        answer = self._client.post("embeddings", body, _Embeddings)
        ordered = sorted(answer.data, key=lambda item: item.index)
        # Two concurrent first calls must agree on one dimension, even if the server changes the
        # model between their batches.
        with self._dimension_lock:
            vectors = unit_vectors(
                [item.embedding for item in ordered],
                n_texts=len(inputs),
                dimension=self._dimension,
                model=model,
            )
            self._dimension = vectors.shape[1]
        return vectors
