"""What is known of the installed product: its version, and where the files of its packages are."""

from importlib.metadata import version
from importlib.resources import files
from pathlib import Path


def packaged(package: str, *parts: str) -> Path:
    """Return the path of a file or folder that belongs to a package.

    It is a real path, for the libraries that read one. The product does not run from an archive.

    Args:
        package: `rag_resources` or `rag_assets`.
        parts: The way to it inside the package.
    """
    return Path(str(files(package).joinpath(*parts)))


def product_version() -> str:
    """Return the version of the product, as `pip` knows it."""
    return version("brain-sync-rag")
