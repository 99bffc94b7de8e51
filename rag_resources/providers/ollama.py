"""Models of an Ollama server."""

import math
from typing import Any

import numpy.typing as npt
from pydantic import BaseModel

from rag_resources.core.configuration import canonical_hash
from rag_resources.core.model_names import short_name
from rag_resources.languages.messages import _
from rag_resources.providers.inputs import clean
from rag_resources.providers.model_server import Json, ModelServer, Options
from rag_resources.providers.protocols import Ending, ModelInfo, Prefixes, Sampling
from rag_resources.providers.server_models import (
    BLANK_STAND_IN,
    Part,
    ServerChat,
    ServerEmbedder,
    chat_messages,
)

DEFAULT_HOST = "http://127.0.0.1:11434"

# A server may take a minute to load a model before it answers. Callers have deadlines.
_CHAT_READ_TIMEOUT_S = 120.0
_EMBED_READ_TIMEOUT_S = 30.0
_CONNECT_TIMEOUT_S = 2.0

# Batches of 16 texts and more have been reported to give other vectors than single texts
# (ollama/ollama issue 6262); 8 is the largest size reported to be right.
_BATCH_TEXTS = 8
# Ollama's default, for a model whose context length it does not report.
_DEFAULT_CONTEXT_TOKENS = 2048

# Ollama loads a model anew for another context length, so there are few of them.
_CONTEXT_STEP_TOKENS = 4_096
_MAX_CONTEXT_TOKENS = 32_768
# Spanish has about four characters a token; tables and names have fewer.
_BYTES_PER_TOKEN = 3
_ROOM_TOKENS = 1_024


def _server(model: str, host: str, connect_timeout_s: float, read_timeout_s: float) -> ModelServer:
    return ModelServer(
        model,
        address=host if "://" in host else f"http://{host}",
        setting="OLLAMA_HOST",
        advice=_("Download it with: ollama pull {model}").format(model=model),
        connect_timeout_s=connect_timeout_s,
        read_timeout_s=read_timeout_s,
    )


class OllamaEmbedder(ServerEmbedder):
    """An embedding model on an Ollama server, which truncates texts longer than its context.

    Args:
        model: Name on the server, such as "nomic-embed-text" or "bge-m3:latest".
        host: Address of the server; credentials in it are sent to the server and never shown.
        prefixes: Put before each question and each passage.
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
        prefixes: Prefixes = Prefixes(),  # noqa: B008 - immutable
        connect_timeout_s: float = _CONNECT_TIMEOUT_S,
        read_timeout_s: float = _EMBED_READ_TIMEOUT_S,
    ) -> None:
        server = _server(model, host, connect_timeout_s, read_timeout_s)
        super().__init__(server, prefixes=prefixes, batch_texts=_BATCH_TEXTS)
        self._info: ModelInfo | None = None

    @property
    def info(self) -> ModelInfo:
        """The model as the server describes it; the server is asked once. Errors as for vectors."""
        # No lock: waiting for one could outlast the deadline, and asking twice does no harm.
        if self._info is None:
            with self._server.understood():
                digest, context_tokens = self._digest(), self._context_tokens()
            self._info = ModelInfo(
                name=short_name("ollama", self._server.model),
                dimension=self._embed("", [BLANK_STAND_IN]).shape[1],
                provider="ollama",
                similarity_threshold=0.0,
                digest=canonical_hash([digest, *self._prefixes]) if any(self._prefixes) else digest,
                max_sequence_tokens=context_tokens,
            )
        return self._info

    def _requested(self, inputs: list[str]) -> npt.ArrayLike:
        body = {"model": self._server.model, "input": inputs}
        vectors: npt.ArrayLike = self._server.post("api/embed", body)["embeddings"]
        return vectors

    def _digest(self) -> str:
        """Ask for the hash of the model's weights: 16 hex digits."""
        model = self._server.model
        wanted = model if ":" in model.rpartition("/")[2] else f"{model}:latest"
        for entry in self._server.get("api/tags")["models"]:
            if wanted in (entry.get("model"), entry.get("name")) and entry.get("digest"):
                return clean(entry["digest"]).removeprefix("sha256:")[:16]
        raise self._server.missing()

    def _context_tokens(self) -> int:
        details = self._server.post("api/show", {"model": self._server.model}).get("model_info")
        for key, value in (details or {}).items():
            if key.endswith(".context_length") and isinstance(value, int) and value > 1:
                return value
        return _DEFAULT_CONTEXT_TOKENS


class OllamaChat(ServerChat):
    """A language model on an Ollama server.

    Args:
        model: Name on the server, such as "llama3.2" or "qwen3:8b".
        host: Address of the server; credentials in it are sent to the server and never shown.
        connect_timeout_s: Longest wait for a connection, in seconds.
        read_timeout_s: Longest silence of the server, in seconds.

    Raises:
        InvalidParameterError: `host` is not an address.
    """

    _PATH = "api/chat"

    def __init__(
        self,
        model: str,
        *,
        host: str = DEFAULT_HOST,
        connect_timeout_s: float = _CONNECT_TIMEOUT_S,
        read_timeout_s: float = _CHAT_READ_TIMEOUT_S,
    ) -> None:
        super().__init__(_server(model, host, connect_timeout_s, read_timeout_s))

    @property
    def name(self) -> str:
        """The name that is stored and shown, such as `ollama:llama3.2`."""
        return f"ollama:{self._server.model}"

    def _body(
        self, prompt: str, system: str, shape: type[BaseModel] | None, sampling: Sampling
    ) -> tuple[Json, Options]:
        # No `num_predict`: a model may use it up by thinking. `stream` counts what is written.
        body: Json = {
            "model": self._server.model,
            "messages": chat_messages(prompt, system),
            "options": {
                "temperature": sampling.temperature,
                "num_ctx": _context(prompt, system, sampling.max_tokens or _ROOM_TOKENS),
            },
        }
        if not sampling.temperature:
            body["options"]["seed"] = 0
        options: dict[str, tuple[Json, ...]] = {"think": ({"think": False},)}
        if shape:
            options["format"] = {"format": shape.model_json_schema()}, {"format": "json"}
        return body, options

    def _part(self, data: Any) -> Part:
        if data.get("error"):
            raise self._server.broke_off()
        is_cut = data.get("done_reason") == "length"
        return Part(
            str(data["message"].get("content") or ""),
            is_end=bool(data["done"]),
            ending=Ending(data.get("prompt_eval_count"), data.get("eval_count"), is_cut),
        )


def _context(prompt: str, system: str, room_tokens: int) -> int:
    """Return a context with room for a prompt and its answer.

    Ollama cuts a prompt that is longer than `num_ctx` without a word; its default is 4,096.
    """
    size = len(prompt.encode("utf-8", "replace")) + len(system.encode("utf-8", "replace"))
    needed = math.ceil(size / _BYTES_PER_TOKEN) + room_tokens + _CONTEXT_STEP_TOKENS // 8
    return min(math.ceil(needed / _CONTEXT_STEP_TOKENS) * _CONTEXT_STEP_TOKENS, _MAX_CONTEXT_TOKENS)
