"""Embeddings from an Ollama server over its HTTP API: batches, retries, checks, Spanish errors.

Which models the product knows, and the prefixes they want, is the business of `registry`.
"""

import re
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

import httpx
import numpy as np
import stamina
from ollama import Client, ResponseError

from rag_resources.core.errors import (
    InvalidParameterError,
    ModelMissingError,
    ProviderError,
    ProviderUnavailableError,
)
from rag_resources.core.messages import Message
from rag_resources.providers.inputs import batches, clean
from rag_resources.providers.protocols import Embedder, ModelInfo, Vectors
from rag_resources.providers.vectors import unit_vectors

DEFAULT_HOST = "http://127.0.0.1:11434"

# Batches of 16 texts and more have been reported to give other vectors than single texts
# (ollama/ollama issue 6262); 8 is the largest size reported to be right.
_BATCH_TEXTS = 8
_ATTEMPTS = 3
_CONNECT_TIMEOUT_S = 2.0
_READ_TIMEOUT_S = 30.0
# Servers answer nothing, or NaN, for a text without tokens.
_BLANK_STAND_IN = "."
# What Ollama gives a model whose context length it does not tell.
_DEFAULT_CONTEXT_TOKENS = 2048
_TOO_MANY_REQUESTS = 429
_NOT_FOUND = 404
_SERVER_ERROR = 500

_Answer = TypeVar("_Answer")


class OllamaEmbedder(Embedder):
    """An embedding model on an Ollama server.

    Creating one contacts nobody. Safe to use from several threads; close it (or use it in a
    `with` statement) to give its connections back. Connection failures, timeouts, 5xx and 429
    are retried, three attempts in all with exponential waits. Blank texts are embedded as ".".
    A text longer than the model's context is cut by the server. Texts are never logged.

    Args:
        model: Name on the server, such as "nomic-embed-text" or "bge-m3:latest".
        host: Address of the server; credentials in it never reach a message.
        query_prefix: Put before each question.
        passage_prefix: Put before each passage.
        dimension: Components expected of a vector; `None` takes those of the first answer.
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
        connect_timeout_s: float = _CONNECT_TIMEOUT_S,
        read_timeout_s: float = _READ_TIMEOUT_S,
    ) -> None:
        self._model = model
        self._shown_host = _without_credentials(host)
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._dimension = dimension
        self._similarity_threshold = similarity_threshold
        self._info: ModelInfo | None = None
        self._lock = threading.Lock()
        timeout = httpx.Timeout(read_timeout_s, connect=connect_timeout_s)
        try:
            self._client = Client(host=host, timeout=timeout)
        except (ValueError, httpx.InvalidURL) as error:
            message = Message.OLLAMA_HOST_INVALID.format(host=self._shown_host)
            raise InvalidParameterError(message, host=self._shown_host) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the embedder cannot be used afterwards."""
        self._client.close()  # type: ignore[no-untyped-call]

    @property
    def info(self) -> ModelInfo:
        """The model as the server describes it; asked once.

        Raises:
            ProviderUnavailableError: The server does not answer.
            ModelMissingError: The server lacks the model.
            ProviderError: The server refuses the request.
            InvalidEmbeddingError: A probe does not give a valid vector.
        """
        with self._lock:
            if self._info is None:
                digest = self._digest()
                context_tokens = self._context_tokens()
                dimension = self._embed("", [_BLANK_STAND_IN]).shape[1]
                self._info = ModelInfo(
                    name=short_name(self._model),
                    dimension=dimension,
                    provider="ollama",
                    digest=digest,
                    similarity_threshold=self._similarity_threshold,
                    max_sequence_tokens=context_tokens,
                )
            return self._info

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages.

        Returns:
            `(n_texts, dimension)` float32, rows finite and L2-normalised.

        Raises:
            ProviderUnavailableError: The server does not answer, also after the retries.
            ModelMissingError: The server lacks the model.
            ProviderError: The server refuses the request.
            InvalidEmbeddingError: The wrong number of vectors, or one that is not finite, zero,
                or of another dimension than before.
        """
        return self._embed(self._passage_prefix, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed questions. Same result and errors as `embed_passages`."""
        return self._embed(self._query_prefix, texts)

    def _embed(self, prefix: str, texts: Sequence[str]) -> Vectors:
        parts: list[Vectors] = []
        for batch in batches(texts, _BATCH_TEXTS):
            inputs = [_not_blank(prefix + clean(text)) for text in batch]
            vectors = self._embed_batch(inputs)
            # A race of two first calls is harmless: the model gives both the same dimension.
            self._dimension = vectors.shape[1]
            parts.append(vectors)
        if not parts:
            return np.empty((0, self._dimension or 0), dtype=np.float32)
        return np.concatenate(parts)

    def _embed_batch(self, inputs: list[str]) -> Vectors:
        answer = self._ask(lambda: self._client.embed(model=self._model, input=inputs))
        return unit_vectors(
            answer.embeddings, n_texts=len(inputs), dimension=self._dimension, model=self._model
        )

    def _digest(self) -> str:
        wanted = self._model if ":" in self._model.rpartition("/")[2] else f"{self._model}:latest"
        for entry in self._ask(self._client.list).models:
            if entry.model == wanted and entry.digest:
                return entry.digest.removeprefix("sha256:")[:16]
        raise self._missing()

    def _context_tokens(self) -> int:
        details = self._ask(lambda: self._client.show(self._model)).modelinfo or {}
        for key, value in details.items():
            if key.endswith(".context_length") and isinstance(value, int):
                return value
        return _DEFAULT_CONTEXT_TOKENS

    def _ask(self, request: Callable[[], _Answer]) -> _Answer:
        """Make a request, with retries where they can help, and translate what goes wrong."""
        # A context, not a decorator: stamina logs a decorated function's arguments, the texts.
        attempts = stamina.retry_context(
            on=_is_transient, attempts=_ATTEMPTS, timeout=None, wait_initial=0.1, wait_max=2.0
        )
        try:
            for attempt in attempts:
                with attempt:
                    return request()
        except ResponseError as error:
            raise self._refusal(error) from error
        except (httpx.HTTPError, ConnectionError) as error:
            message = Message.OLLAMA_UNAVAILABLE.format(host=self._shown_host)
            raise ProviderUnavailableError(
                message, host=self._shown_host, reason=type(error).__name__
            ) from error
        except (ValueError, TypeError, AttributeError) as error:
            # Not JSON, or JSON of another shape (pydantic's error is a ValueError). The cause is
            # dropped: it would carry the server's answer into the log.
            message = Message.OLLAMA_UNREADABLE_ANSWER.format(host=self._shown_host)
            raise ProviderUnavailableError(
                message, host=self._shown_host, reason=type(error).__name__
            ) from None
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _refusal(self, error: ResponseError) -> ProviderError:
        status = error.status_code
        # A server without the endpoint also answers 404, but does not speak of a model.
        if status == _NOT_FOUND and "model" in str(error.error):
            return self._missing()
        context = {"host": self._shown_host, "model": self._model, "status": status}
        if _is_transient(error):
            message = Message.OLLAMA_SERVER_ERROR.format(host=self._shown_host, status=status)
            return ProviderUnavailableError(message, **context)
        message = Message.OLLAMA_REFUSED.format(**context)
        return ProviderError(message, **context)

    def _missing(self) -> ModelMissingError:
        message = Message.OLLAMA_MODEL_MISSING.format(model=self._model)
        return ModelMissingError(message, model=self._model, host=self._shown_host)


def short_name(model: str) -> str:
    """Turn a model's name on the server into one that is safe as an asset key.

    Args:
        model: Such as "bge-m3:567m".

    Returns:
        Such as "ollama_bge_m3_567m": letters, digits and `_` only; the tag "latest" is left out.
    """
    return "ollama_" + re.sub(r"\W+", "_", model.removesuffix(":latest"), flags=re.ASCII).strip("_")


def _is_transient(error: Exception) -> bool:
    if isinstance(error, ResponseError):
        return error.status_code >= _SERVER_ERROR or error.status_code == _TOO_MANY_REQUESTS
    return isinstance(error, (httpx.TransportError, ConnectionError))


def _not_blank(text: str) -> str:
    return text if text.strip() else _BLANK_STAND_IN


def _without_credentials(host: str) -> str:
    if "@" not in host:
        return host
    parts = urlsplit(host if "://" in host else f"http://{host}")
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
