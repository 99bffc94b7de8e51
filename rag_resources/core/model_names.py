"""Names of models: of embedding models as all parts use them, and of language models."""

import re

from rag_resources.core.fusion_config import MODEL_NAME
from rag_resources.core.quoting import shown
from rag_resources.languages.messages import Text, _

EMBEDDED_MODELS = ("e5_small", "use_multilingual")
"""The models that are computed in this process."""

PREFIXES: dict[str, tuple[str, str]] = {
    "bge-m3": ("", ""),
    "embeddinggemma": ("task: search result | query: ", "title: none | text: "),
    "mxbai-embed-large": ("Represent this sentence for searching relevant passages: ", ""),
    "nomic-embed-text": ("search_query: ", "search_document: "),
    "snowflake-arctic-embed2": ("query: ", ""),
}
"""The models of servers by their name there, with the prefixes (query, passage) that each was
trained with, according to its model card. Any other model of a server works too, without them."""


def short_name(provider: str, model: str) -> str:
    """Turn a model's name on its server into one that is safe as an asset key.

    Args:
        provider: `ollama` or `openai`.
        model: Such as "bge-m3:567m".

    Returns:
        Such as "ollama_bge_m3_567m": letters, digits and `_` only; the tag "latest" is left out.
    """
    name = re.sub(r"\W+", "_", model.removesuffix(":latest"), flags=re.ASCII).strip("_")
    return f"{provider}_{name}"


_PROVIDERS = ("ollama", "openai")
"""Of language models, which are any of a server's."""

OPENAI_SHORT = "openai_"
_NAMES = (*EMBEDDED_MODELS, *(short_name("ollama", model) for model in PREFIXES))
MODEL_CHOICES = ", ".join((*_NAMES, f"{OPENAI_SHORT}<modelo>"))
"""The names that settings and configurations may use, for people."""


def is_model_name(name: str) -> bool:
    """Whether settings and configurations may name an embedding model so; see `MODEL_CHOICES`."""
    if re.fullmatch(MODEL_NAME, name) is None:
        return False
    return name in _NAMES or (name.startswith(OPENAI_SHORT) and name != OPENAI_SHORT)


def unknown_model(name: str) -> Text:
    """Say that a name is not one of an embedding model."""
    return _("“{value}” is not one of the options: {expected}").format(
        value=shown(name), expected=MODEL_CHOICES
    )


def language_model(name: str) -> tuple[str, str] | None:
    """Return the provider and the model of a name such as "ollama:llama3.2"; None if it is none."""
    provider, _, model = name.partition(":")
    return (provider, model.strip()) if provider in _PROVIDERS and model.strip() else None
