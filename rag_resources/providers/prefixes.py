"""Prefixes of questions and passages, as part of what identifies a model.

A vector depends on its prefix as on the weights. So the digest in `embedding_models` covers both,
and a model whose prefixes have changed is refused like one with other weights. The prefixes that
models had before are left out of the digest, so that what is registered stays valid.
"""

from typing import NamedTuple

from rag_resources.core.configuration import canonical_hash


class Prefixes(NamedTuple):
    """What a model puts before each text."""

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
"""What each model had before the digest covered it: history, which does not change."""


def digest_with_prefixes(digest: str, model: str, prefixes: Prefixes) -> str:
    """Return the digest of a model with its prefixes.

    Args:
        digest: Of the weights.
        model: An Ollama model with or without registry and tag, or the name of an embedded one.
        prefixes: What it uses.
    """
    family = model.rpartition("/")[2].partition(":")[0]
    if prefixes == _FIRST.get(family, Prefixes()):
        return digest
    return canonical_hash([digest, *prefixes])
