"""The names of figures on Dagster's pages: in both languages, each its own, and never forgotten."""

import ast
from pathlib import Path

import pytest

from rag_resources.languages.files import read
from rag_resources.languages.labels import label
from rag_resources.languages.messages import OPERATORS

ROOT = Path(__file__).parents[2]
SECTIONS = ("fields", "stages", "prefixes", "suffixes")


def words(language: str, section: str) -> dict[str, str]:
    return dict(read(language, "labels.toml")[section])


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("language", OPERATORS)
def test_operators_read_every_name_in_their_language(language: str, section: str) -> None:
    assert list(words(language, section)) == list(words("es", section))


def _keys(tree: ast.AST) -> set[str]:
    """Return the constant keys of the dictionaries in a piece of code."""
    return {
        key.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def test_everything_that_assets_checks_and_jobs_tell_passes_through_the_names() -> None:
    """No literal of the code is shown: each such dictionary is given to `labelled`."""
    bare: list[str] = []
    unnamed: set[str] = set()
    for path in (ROOT / "rag_assets").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called == "labelled":
                unnamed |= {key for key in _keys(node) if label(key) == key and "_" in key}
                continue
            told = [item.value for item in node.keywords if item.arg == "metadata"]
            if called.endswith((".add_output_metadata", ".add_asset_metadata")):
                told += node.args[:1]
            bare += [
                f"{path.relative_to(ROOT)}:{value.lineno}"
                for value in told
                if isinstance(value, ast.Dict) and None not in value.keys and _keys(value)
            ]
    assert bare == []
    assert unnamed == set()
