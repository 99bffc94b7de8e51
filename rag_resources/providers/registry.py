"""The models that the product knows, and one shared object for each.

Clients and models are imported when one is built: they load slowly.
"""

from functools import cache

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.model_names import (
    MODEL_CHOICES,
    OPENAI_SHORT,
    PREFIXES,
    language_model,
    short_name,
)
from rag_resources.core.servers import Servers
from rag_resources.languages.messages import _
from rag_resources.providers.embedded_e5 import E5Embedder
from rag_resources.providers.protocols import Embedder, LanguageModel, Prefixes

_BY_SHORT_NAME = {
    short_name(provider, model): (provider, model)
    for provider, models in (
        ("ollama", PREFIXES),
        ("openai", ("text-embedding-3-small", "text-embedding-3-large", *PREFIXES)),
    )
    for model in models
}
THIS_MACHINE = Servers()


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
    named = language_model(name) or _BY_SHORT_NAME.get(name)
    if not named and name.startswith(OPENAI_SHORT) and name != OPENAI_SHORT:
        named = "openai", name.removeprefix(OPENAI_SHORT)
    if not named:
        return _embedded(name)
    provider, model = named
    if provider == "ollama":
        servers = Servers(servers.ollama_host)  # No other address matters.
    return _embedder_of_server(provider, model, servers)


@cache
def _embedded(name: str) -> Embedder:
    if name == "e5_small":
        return E5Embedder()
    if name == "use_multilingual":
        from rag_resources.providers.embedded_use import USEEmbedder

        return USEEmbedder()
    raise InvalidParameterError(
        _("Unknown embedding model: “{name}”. Available models: {known}").format(
            name=name, known=MODEL_CHOICES
        ),
        name=name,
    )


@cache
def _embedder_of_server(provider: str, model: str, servers: Servers) -> Embedder:
    prefixes = Prefixes(*PREFIXES.get(model.rpartition("/")[2].partition(":")[0], ("", "")))
    if provider == "ollama":
        from rag_resources.providers.ollama import DEFAULT_HOST, OllamaEmbedder

        return OllamaEmbedder(model, host=servers.ollama_host or DEFAULT_HOST, prefixes=prefixes)
    from rag_resources.providers.openai import OpenAIEmbedder

    return OpenAIEmbedder(
        model,
        base_url=_openai_address(servers),
        api_key=servers.openai_api_key,
        prefixes=prefixes,
    )


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
    return _language_model(*named, servers)


@cache
def _language_model(provider: str, model: str, servers: Servers) -> LanguageModel:
    if provider == "ollama":
        from rag_resources.providers.ollama import DEFAULT_HOST, OllamaChat

        return OllamaChat(model, host=servers.ollama_host or DEFAULT_HOST)
    from rag_resources.providers.openai import OpenAIChat

    return OpenAIChat(model, base_url=_openai_address(servers), api_key=servers.openai_api_key)


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
