"""Models of an OpenAI-compatible server: llama-server, vLLM, LM Studio, OpenAI and others."""

import json
from base64 import b64decode
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, SecretStr

from rag_resources.core.configuration import canonical_hash
from rag_resources.core.model_names import short_name
from rag_resources.languages.messages import _
from rag_resources.providers.model_server import Json, ModelServer, Options
from rag_resources.providers.protocols import Ending, ModelInfo, Prefixes, Sampling
from rag_resources.providers.server_models import (
    BLANK_STAND_IN,
    Part,
    ServerChat,
    ServerEmbedder,
    chat_messages,
    strict_schema,
)

_CONNECT_TIMEOUT_S = 5.0
# A server may take a minute to read a long prompt before it answers. Callers have deadlines.
_CHAT_READ_TIMEOUT_S = 120.0
_EMBED_READ_TIMEOUT_S = 60.0
_BATCH_TEXTS = 100
# The protocol does not tell a model's context length; this is that of OpenAI's own models.
_CONTEXT_TOKENS = 8_191


def _server(
    model: str, base_url: str, api_key: SecretStr | None, read_timeout_s: float
) -> ModelServer:
    return ModelServer(
        model,
        address=base_url,
        setting="OPENAI_BASE_URL",
        advice=_("Check its name; GET /models lists those that the server has."),
        key=api_key,
        connect_timeout_s=_CONNECT_TIMEOUT_S,
        read_timeout_s=read_timeout_s,
    )


class OpenAIEmbedder(ServerEmbedder):
    """An embedding model on an OpenAI-compatible server, which refuses texts over its context.

    The protocol has no digest of a model's weights. So the digest here covers only its name and
    prefixes: give new weights a new name.

    Args:
        model: Name on the server.
        base_url: Address of the server, up to the version.
        api_key: The server's key, if it requires one.
        prefixes: Put before each question and each passage.

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
    ) -> None:
        server = _server(model, base_url, api_key, _EMBED_READ_TIMEOUT_S)
        super().__init__(server, prefixes=prefixes, batch_texts=_BATCH_TEXTS)

    @property
    def info(self) -> ModelInfo:
        """The model; the server is asked for a vector once. Errors as for vectors."""
        # No lock: waiting for one could outlast the deadline, and asking twice does no harm.
        dimension = self._dimension or self._embed("", [BLANK_STAND_IN]).shape[1]
        return ModelInfo(
            name=short_name("openai", self._server.model),
            dimension=dimension,
            provider="openai",
            similarity_threshold=0.0,
            digest=canonical_hash([self._server.model, *self._prefixes]),
            max_sequence_tokens=_CONTEXT_TOKENS,
        )

    def _requested(self, inputs: list[str]) -> npt.ArrayLike:
        body = {"model": self._server.model, "input": inputs}
        options = {"encoding_format": ({"encoding_format": "float"},)}
        data = self._server.post("embeddings", body, options)["data"]
        if all(isinstance(item.get("index"), int) for item in data):
            data = sorted(data, key=lambda item: item["index"])
        return [_numbers(item["embedding"]) for item in data]


def _numbers(vector: Any) -> Any:
    """Return a vector that some servers encode as base64 of float32."""
    return np.frombuffer(b64decode(vector), dtype="<f4") if isinstance(vector, str) else vector


class OpenAIChat(ServerChat):
    """A language model on an OpenAI-compatible server.

    A shape is requested with `json_schema`; or, if the server refuses that, with `json_object` and
    a schema, as for llama-cpp-python; or in words.

    Args:
        model: Name on the server.
        base_url: Address of the server, up to the version.
        api_key: The server's key, if it requires one.
        read_timeout_s: Longest silence of the server, in seconds.

    Raises:
        InvalidParameterError: `base_url` is not an HTTP address.
    """

    _PATH = "chat/completions"

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: SecretStr | None = None,
        read_timeout_s: float = _CHAT_READ_TIMEOUT_S,
    ) -> None:
        super().__init__(_server(model, base_url, api_key, read_timeout_s))

    @property
    def name(self) -> str:
        """The name that is stored and shown, such as `openai:gpt-4o-mini`."""
        return f"openai:{self._server.model}"

    def _body(
        self, prompt: str, system: str, shape: type[BaseModel] | None, sampling: Sampling
    ) -> tuple[Json, Options]:
        body: Json = {"model": self._server.model, "messages": chat_messages(prompt, system)}
        options: dict[str, tuple[Json, ...]] = {
            "temperature": ({"temperature": sampling.temperature},),
        }
        if not sampling.temperature:
            options["seed"] = ({"seed": 0},)
        if sampling.max_tokens is not None:
            limit = sampling.max_tokens
            options["max_tokens"] = {"max_tokens": limit}, {"max_completion_tokens": limit}
        if shape:
            schema = strict_schema(shape)
            named = {"name": shape.__name__.lstrip("_"), "schema": schema, "strict": True}
            told = f"Write only JSON of this schema: {json.dumps(schema, ensure_ascii=False)}"
            options["response_format"] = (
                {"response_format": {"type": "json_schema", "json_schema": named}},
                {"response_format": {"type": "json_object", "schema": schema}},
                {"messages": chat_messages(prompt, system, told)},
            )
        return body, options

    def _streaming(self) -> Options:
        return {"stream_options": ({"stream_options": {"include_usage": True}},)}

    def _part(self, data: Any) -> Part:
        if data == "[DONE]":
            return Part(is_end=True)
        choice: Json = next(iter(data["choices"]), {})
        reason, usage = choice.get("finish_reason"), data.get("usage") or {}
        message = choice.get("delta") or choice.get("message") or {}
        return Part(
            str(message.get("content") or ""),
            is_end=bool(reason),
            ending=Ending(
                usage.get("prompt_tokens"), usage.get("completion_tokens"), reason == "length"
            ),
        )
