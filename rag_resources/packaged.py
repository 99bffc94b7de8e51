"""The installed product: its version, and the paths of files in its packages."""

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path


def packaged(package: str, *parts: str) -> Path:
    """Return the path of a file or folder inside a package.

    It is a real path, for libraries that need one. The product cannot run from an archive.

    Args:
        package: `rag_resources` or `rag_assets`.
        parts: The path inside the package.
    """
    return Path(str(files(package).joinpath(*parts)))


def product_version() -> str:
    """Return the version of the product, as `pip` knows it."""
    return version("brain-sync-rag")
