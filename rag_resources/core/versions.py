"""The version of an algorithm: a name raised by hand, and a hash of its data if they have changed.

Raise the name ("extractive-1" to "extractive-2") when a change of the code changes the results.
Changes of the data need nothing by hand: they show in the hash. Chunks have
`core.chunking_version`, which also hashes the result for a probe text.
"""

from typing import Any

from rag_resources.core.configuration import canonical_hash


def version_of(name: str, data: Any, *, first: str) -> str:
    """Return the version of an algorithm.

    Args:
        name: Its name, with the number of its code.
        data: All data that it uses, as JSON: words, patterns, thresholds.
        first: `canonical_hash` of the data for which the version is the name alone.
    """
    current = canonical_hash(data)
    return name if current == first else f"{name}+{current[:8]}"
