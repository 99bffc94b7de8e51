"""The version of an algorithm: a name raised by hand, and a hash of its data if that has changed.

Raise the name ("extractive-1" to "extractive-2") when the code changes what comes out. The data
need no hand: a change shows in the hash. Chunks have `core.chunking_version`, which also probes.
"""

from typing import Any

from rag_resources.core.configuration import canonical_hash


def version_of(name: str, data: Any, *, first: str) -> str:
    """Return the version of an algorithm.

    Args:
        name: With the number of its code.
        data: JSON of all it works by: words, patterns, thresholds.
        first: `canonical_hash` of the data that the name alone stands for.
    """
    current = canonical_hash(data)
    return name if current == first else f"{name}+{current[:8]}"
