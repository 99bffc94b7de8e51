"""The models that the product knows, and one shared object for each."""

import threading

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message
from rag_resources.providers.embedded_e5 import E5Embedder
from rag_resources.providers.embedded_use import USEEmbedder
from rag_resources.providers.ollama import OllamaEmbedder, short_name
from rag_resources.providers.ollama_chat import OllamaChat
from rag_resources.providers.ollama_client import DEFAULT_HOST
from rag_resources.providers.protocols import Embedder, LanguageModel

EMBEDDED_MODELS = ("e5_small", "use_multilingual")
_OLLAMA = "ollama:"

# Prefixes (query, passage) that a model was trained with, according to its model card. Any other
# model of an Ollama server works too, without prefixes.
OLLAMA_PREFIXES: dict[str, tuple[str, str]] = {
    "bge-m3": ("", ""),
    "embeddinggemma": ("task: search result | query: ", "title: none | text: "),
    "mxbai-embed-large": ("Represent this sentence for searching relevant passages: ", ""),
    "nomic-embed-text": ("search_query: ", "search_document: "),
    "snowflake-arctic-embed2": ("query: ", ""),
}
_OLLAMA_BY_SHORT_NAME = {short_name(model): model for model in OLLAMA_PREFIXES}
MODEL_NAMES = (*EMBEDDED_MODELS, *_OLLAMA_BY_SHORT_NAME)
"""Names of the embedding models, as used in settings, configurations, assets and tables."""

_lock = threading.Lock()
_embedders: dict[tuple[str, str], Embedder] = {}
_language_models: dict[tuple[str, str], LanguageModel] = {}


def build_embedder(name: str, *, ollama_host: str | None = None) -> Embedder:
    """Return the embedder with a name; equal arguments give the same object.

    Nothing is loaded or contacted until it is used.

    Args:
        name: "e5_small", "use_multilingual", "ollama:<model>" for any model of an Ollama server,
            or the short name (`ModelInfo.name`) of an Ollama model listed here, such as
            "ollama_bge_m3".
        ollama_host: Address of the Ollama server; `None` is this machine's.

    Raises:
        InvalidParameterError: The name is none of these.
    """
    model = _ollama_model(name)
    host = (ollama_host or DEFAULT_HOST) if model else ""
    key = (f"{_OLLAMA}{model}" if model else name, host)
    with _lock:
        if key not in _embedders:
            _embedders[key] = _build_ollama(model, host) if model else _build_embedded(name)
        return _embedders[key]


def build_language_model(
    name: str | None, *, ollama_host: str | None = None
) -> LanguageModel | None:
    """Return the language model with a name; equal arguments give the same object.

    Nothing is contacted until it is used.

    Args:
        name: "ollama:<model>" for any model of an Ollama server; `None` or "" for none.
        ollama_host: Address of the Ollama server; `None` is this machine's.

    Raises:
        InvalidParameterError: The name is none of these.
    """
    if not name:
        return None
    model = name.removeprefix(_OLLAMA).strip()
    if not name.startswith(_OLLAMA) or not model:
        raise InvalidParameterError(Message.LANGUAGE_MODEL_UNKNOWN.format(name=name), name=name)
    key = (model, ollama_host or DEFAULT_HOST)
    with _lock:
        if key not in _language_models:
            _language_models[key] = OllamaChat(model, host=key[1])
        return _language_models[key]


def embedded_runtime(name: str) -> str | None:
    """What computes a model on this machine; None if it is not one of the embedded ones."""
    return build_embedder(name).runtime if name in EMBEDDED_MODELS else None


def _ollama_model(name: str) -> str | None:
    if name.startswith(_OLLAMA):
        return name.removeprefix(_OLLAMA).strip() or None
    return _OLLAMA_BY_SHORT_NAME.get(name)


def _build_ollama(model: str, host: str) -> Embedder:
    family = model.rpartition("/")[2].partition(":")[0]
    query_prefix, passage_prefix = OLLAMA_PREFIXES.get(family, ("", ""))
    return OllamaEmbedder(
        model, host=host, query_prefix=query_prefix, passage_prefix=passage_prefix
    )


def _build_embedded(name: str) -> Embedder:
    if name == "e5_small":
        return E5Embedder()
    if name == "use_multilingual":
        return USEEmbedder()
    known = ", ".join([*MODEL_NAMES, f"{_OLLAMA}<modelo>"])
    raise InvalidParameterError(
        Message.EMBEDDING_MODEL_UNKNOWN.format(name=name, known=known), name=name
    )
