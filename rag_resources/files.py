"""Writes the product's files: atomically, and readable by their owner only.

A URL names their location: a folder or an object store. Sources of notes are read in `ingestion`.
"""

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from rag_resources.core.errors import InvalidParameterError, unreadable
from rag_resources.languages.messages import _

PRIVATE = 0o600
PRIVATE_FOLDER = 0o700
OTHERS = 0o077
"""The access rights of everybody but the owner; as a umask, they keep new files private."""
RETRIES = 3
RETRY_TIMEOUT = timedelta(seconds=60)


class Files(Protocol):
    """A location of files; each file has a relative path with `/` as its name."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically, replacing an existing one.

        Raises:
            InvalidParameterError: The location cannot be written.
        """
        ...

    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            InvalidParameterError: The file does not exist, or the location cannot be read.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete a file, if it exists.

        Raises:
            InvalidParameterError: The location cannot be written.
        """
        ...

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of the files of a folder, in order; none if there is no such folder.

        Raises:
            InvalidParameterError: The location cannot be read.
        """
        ...

    def where(self, name: str = "") -> str:
        """Return where a file is, for people: a path, or a URL without credentials."""
        ...


def open_files(url: str) -> Files:
    """Open the location that a URL names.

    Args:
        url: `file:///folder`, or `s3://bucket/prefix`, `gs://…`, `az://…`. Credentials come from
            the environment, in the variables that the store's own tools use.

    Raises:
        InvalidParameterError: The URL names no valid location.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalFiles(Path(unquote(parts.path)))
    return ObjectFiles(url)


class LocalFiles(Files):
    """Files in a folder, readable by their owner only.

    Args:
        folder: Created with the first file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, data: bytes) -> None:
        """Write a file so that it survives a power failure."""
        path = self._folder / name
        try:
            _make_private(path.parent)
            write_atomically(path, data, mode=PRIVATE)
        except OSError as error:
            raise InvalidParameterError(
                _(
                    "{path} cannot be written: check the folder, the permissions and the free "
                    "space."
                ).format(path=path),
                path=path,
            ) from error

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        path = self._folder / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise InvalidParameterError(unreadable(path, error), path=path) from error

    def delete(self, name: str) -> None:
        """Delete a file."""
        path = self._folder / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise InvalidParameterError(
                _(
                    "{path} cannot be written: check the folder, the permissions and the free "
                    "space."
                ).format(path=path),
                path=path,
            ) from error

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of the files of a folder; those being written have hidden names."""
        path = self._folder / folder
        try:
            found = sorted(each.name for each in path.iterdir()) if path.exists() else []
        except OSError as error:
            raise InvalidParameterError(unreadable(path, error), path=path) from error
        yield from (f"{folder}/{name}" for name in found if not name.startswith("."))

    def where(self, name: str = "") -> str:
        """Return the path of a file."""
        return str(self._folder / name)


class ObjectFiles(Files):
    """Files in an object store, which shows an object only once it is complete.

    Args:
        url: With bucket and prefix.

    Raises:
        InvalidParameterError: The URL or the store's environment variables are wrong.
    """

    def __init__(self, url: str) -> None:
        from obstore.store import from_url

        self._url = url.rstrip("/")
        with self._told():
            self._store = from_url(
                url, retry_config={"max_retries": RETRIES, "retry_timeout": RETRY_TIMEOUT}
            )

    def write(self, name: str, data: bytes) -> None:
        """Put an object."""
        with self._told():
            self._store.put(name, data)

    def read(self, name: str) -> bytes:
        """Get an object."""
        with self._told():
            return bytes(self._store.get(name).bytes())

    def delete(self, name: str) -> None:
        """Delete an object."""
        with self._told(), suppress(FileNotFoundError):
            self._store.delete(name)

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of the objects under a prefix."""
        with self._told():
            pages = [[str(each["path"]) for each in page] for page in self._store.list(folder)]
        yield from sorted(path for page in pages for path in page)

    def where(self, name: str = "") -> str:
        """Return the URL of an object."""
        return f"{self._url}/{name}" if name else self._url

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise our own short errors: the store's messages may contain keys and signatures."""
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            raise InvalidParameterError(
                _(
                    "{url} (FILES_URL) cannot be used: {reason}. Check the address, the "
                    "credentials of the environment and the network."
                ).format(url=self._url, reason=type(error).__name__),
                url=self._url,
            ) from error


def write_atomically(path: Path, data: str | bytes | Iterable[bytes], *, mode: int) -> None:
    """Write a file completely or leave the old one; it belongs to the owner of its folder.

    Args:
        path: The file, in an existing folder.
        data: The content, whole or in parts; text is encoded as UTF-8.
        mode: The file's mode, regardless of the umask.

    Raises:
        OSError: The file cannot be written.
    """
    descriptor, name = -1, path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            if os.geteuid() == 0:
                owner = path.parent.stat()
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            whole = data.encode() if isinstance(data, str) else data
            file.writelines([whole] if isinstance(whole, bytes) else whole)
            file.flush()
            os.fsync(file.fileno())
        name.replace(path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def set_aside(path: Path) -> None:
    """Rename a file that is about to be replaced; the suffix `.anterior` keeps it."""
    path.replace(path.with_name(f"{path.name}.anterior"))


def make_private(root: Path) -> None:
    """Make a file, or a folder with everything in it, accessible to its owner only.

    Links are not followed. Files that vanish meanwhile or belong to somebody else are left out.
    """
    paths = [root]
    for folder, folders, files in os.walk(root):
        paths += (Path(folder) / name for name in (*folders, *files))
    for path in paths:
        with suppress(FileNotFoundError, PermissionError):
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & OTHERS and not path.is_symlink():
                path.chmod(mode & ~OTHERS)


def _sync(folder: Path) -> None:
    """Flush the folder, so that the name of a new file survives a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_private(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to their owner only."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
