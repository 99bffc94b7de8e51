"""Hashes of readers, which show that pages of another version of a reader are stale."""

from functools import cache
from importlib.metadata import version

from rag_resources.core.configuration import canonical_hash


@cache
def identity_of(reader: str, revision: int, *packages: str) -> str:
    """Return the hash of a reader: its name, the revision of its code, and its packages' versions.

    Args:
        reader: Its name.
        revision: Raise it by 1 when a file is read in another way.
        packages: The distributions that parse for it.
    """
    versions = {package: version(package) for package in packages}
    return canonical_hash({"reader": reader, "revision": revision, "packages": versions})
