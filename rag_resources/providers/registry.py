"""The models that the product knows, and one shared object for each."""

import threading

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.model_names import (
    EMBEDDED_MODELS,
    MODEL_CHOICES,
    OPENAI_SHORT,
    PREFIXES,
    language_model,
    short_name,
)
from rag_resources.core.servers import Servers
from rag_resources.languages.messages import _
from rag_resources.providers.embedded_e5 import E5Embedder
from rag_resources.providers.embedded_use import USEEmbedder
from rag_resources.providers.ollama import DEFAULT_HOST, OllamaChat, OllamaEmbedder
from rag_resources.providers.openai import OpenAIChat, OpenAIEmbedder
from rag_resources.providers.protocols import Embedder, LanguageModel, Prefixes

_OLLAMA = "ollama:"
_OPENAI = "openai:"

_OLLAMA_BY_SHORT_NAME = {short_name("ollama", model): model for model in PREFIXES}
_OPENAI_BY_SHORT_NAME = {
    short_name("openai", model): model
    for model in ("text-embedding-3-small", "text-embedding-3-large", *PREFIXES)
}
THIS_MACHINE = Servers()

_lock = threading.Lock()
_embedders: dict[tuple[str, Servers], Embedder] = {}
_language_models: dict[tuple[str, Servers], LanguageModel] = {}


def build_embedder(name: str, servers: Servers = THIS_MACHINE) -> Embedder:
    """Return the embedder with a name; equal arguments give the same object.

    Nothing is loaded or contacted until it is used.

    Args:
        name: "e5_small", "use_multilingual"; "ollama:<model>" or "openai:<model>" for any model of
            a server; or a short name (`ModelInfo.name`): of an Ollama model listed here, such as
            "ollama_bge_m3", or "openai_<model>" for a model of an OpenAI-compatible server that is
            listed here or is called <model> there.
        servers: Where the servers are.

    Raises:
        InvalidParameterError: The name is none of these, or its server's address is missing.
    """
    ollama, openai = _ollama_model(name), _openai_model(name)
    if ollama:
        key = (f"{_OLLAMA}{ollama}", Servers(servers.ollama_host))
    elif openai:
        key = (f"{_OPENAI}{openai}", servers)
    else:
        key = (name, THIS_MACHINE)
    with _lock:
        if key not in _embedders:
            if ollama:
                _embedders[key] = OllamaEmbedder(
                    ollama, host=servers.ollama_host or DEFAULT_HOST, prefixes=_prefixes(ollama)
                )
            elif openai:
                _embedders[key] = OpenAIEmbedder(
                    openai,
                    base_url=_openai_address(servers),
                    api_key=servers.openai_api_key,
                    prefixes=_prefixes(openai),
                )
            else:
                _embedders[key] = _build_embedded(name)
        return _embedders[key]


def build_language_model(name: str | None, servers: Servers = THIS_MACHINE) -> LanguageModel | None:
    """Return the language model with a name; equal arguments give the same object.

    Nothing is contacted until it is used.

    Args:
        name: "ollama:<model>" or "openai:<model>" for any model of a server; `None` or "" for none.
        servers: Where the servers are.

    Raises:
        InvalidParameterError: The name is none of these, or its server's address is missing.
    """
    if not name:
        return None
    named = language_model(name)
    if named is None:
        raise InvalidParameterError(
            _(
                "Unknown language model: “{name}”. Write ollama:<model> or openai:<model>, or "
                "nothing to use none."
            ).format(name=name),
            name=name,
        )
    provider, model = named
    key = (f"{provider}:{model}", servers)
    with _lock:
        if key not in _language_models:
            if key[0].startswith(_OLLAMA):
                host = servers.ollama_host or DEFAULT_HOST
                _language_models[key] = OllamaChat(model, host=host)
            else:
                _language_models[key] = OpenAIChat(
                    model, base_url=_openai_address(servers), api_key=servers.openai_api_key
                )
        return _language_models[key]


def embedded_runtime(name: str) -> str | None:
    """What computes a model on this machine; None if it is not one of the embedded ones."""
    return build_embedder(name).runtime if name in EMBEDDED_MODELS else None


def _ollama_model(name: str) -> str | None:
    if name.startswith(_OLLAMA):
        return name.removeprefix(_OLLAMA).strip() or None
    return _OLLAMA_BY_SHORT_NAME.get(name)


def _openai_model(name: str) -> str | None:
    if name.startswith(_OPENAI):
        return name.removeprefix(_OPENAI).strip() or None
    if name.startswith(OPENAI_SHORT):
        return _OPENAI_BY_SHORT_NAME.get(name, name.removeprefix(OPENAI_SHORT)) or None
    return None


def _openai_address(servers: Servers) -> str:
    """Return the address of the OpenAI-compatible server.

    Raises:
        InvalidParameterError: None is set.
    """
    if not servers.openai_base_url:
        raise InvalidParameterError(
            _(
                "OPENAI_BASE_URL is missing: the address of the OpenAI-compatible server, such as "
                "http://127.0.0.1:8080/v1."
            )
        )
    return servers.openai_base_url


def _prefixes(model: str) -> Prefixes:
    return Prefixes(*PREFIXES.get(model.rpartition("/")[2].partition(":")[0], ("", "")))


def _build_embedded(name: str) -> Embedder:
    if name == "e5_small":
        return E5Embedder()
    if name == "use_multilingual":
        return USEEmbedder()
    raise InvalidParameterError(
        _("Unknown embedding model: “{name}”. Available models: {known}").format(
            name=name, known=MODEL_CHOICES
        ),
        name=name,
    )
