"""Prefixes of questions and passages, as part of a model's identity.

A vector depends on its prefix as much as on the weights. So the digest in `embedding_models` covers
both, and a model whose prefixes have changed is refused like one with other weights. The prefixes
that models had before this rule are not part of the digest, so registered models stay valid.
"""

from typing import NamedTuple

from rag_resources.core.configuration import canonical_hash


class Prefixes(NamedTuple):
    """The texts that a model puts before each question and passage."""

    query: str = ""
    passage: str = ""


_FIRST = {
    "bge-m3": Prefixes(),
    "e5_small": Prefixes("query: ", "passage: "),
    "embeddinggemma": Prefixes("task: search result | query: ", "title: none | text: "),
    "mxbai-embed-large": Prefixes("Represent this sentence for searching relevant passages: "),
    "nomic-embed-text": Prefixes("search_query: ", "search_document: "),
    "snowflake-arctic-embed2": Prefixes("query: "),
}
"""The prefixes that each model had before the digest covered them; never change these."""


def digest_with_prefixes(digest: str, model: str, prefixes: Prefixes) -> str:
    """Return the digest of a model with its prefixes.

    Args:
        digest: Digest of the weights.
        model: An Ollama model with or without registry and tag, or the name of an embedded one.
        prefixes: The prefixes that the model uses.
    """
    family = model.rpartition("/")[2].partition(":")[0]
    if prefixes == _FIRST.get(family, Prefixes()):
        return digest
    return canonical_hash([digest, *prefixes])
