"""Checks that docs/architecture.md, glossary.md and extending.md match the code."""

import re
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ARCHITECTURE = (DOCS / "architecture.md").read_text("utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
SOURCES = [
    path
    for folder in ("rag_resources", "rag_assets", "sql")
    for path in sorted((ROOT / folder).rglob("*.*"))
    if path.suffix in {".py", ".sql"} and path.name != "messages.py"
]


def table(text: str) -> list[list[str]]:
    """The cells of every row of a page's table, without its head."""
    rows = re.findall(r"^\| (.*) \|$", text, re.MULTILINE)
    return [re.split(r" \| ", row) for row in rows[1:]]


def drawn_imports() -> set[str]:
    """Every arrow of the diagram, one a line."""
    (diagram,) = re.findall(r"```mermaid\nflowchart TD\n(.*?)```", ARCHITECTURE, re.DOTALL)
    arrows = [line.strip().partition(" --> ") for line in diagram.splitlines()]
    return {f"{left} --> {right}" for left, _, all_ in arrows for right in all_.split(" & ")}


def necessary_imports() -> set[str]:
    """Every import between packages that does not follow from others, one a line."""
    graph = grimp.build_graph("rag_resources", "rag_assets", cache_dir=None)
    packages = {"rag_assets", *graph.find_children("rag_resources")}
    for package in packages:
        graph.squash_module(package)
    found = set()
    for importer in packages:
        imported = graph.find_modules_directly_imported_by(importer) & packages - {importer}
        for target in imported:
            others = imported - {target}
            if not any(graph.chain_exists(importer=other, imported=target) for other in others):
                found.add(f"{importer} --> {target}".replace("rag_resources.", ""))
    return found


def test_the_diagram_shows_the_imports_there_are() -> None:
    drawn, real = drawn_imports(), necessary_imports()
    assert {"to draw": real - drawn, "to take out": drawn - real} == {
        "to draw": set(),
        "to take out": set(),
    }


def test_the_table_has_the_layers_of_the_contract() -> None:
    (layers,) = (item["layers"] for item in CONTRACTS["contracts"] if item["type"] == "layers")
    shown = [re.findall(r"`(\w+)`", packages) for packages, _ in table(ARCHITECTURE)]
    assert shown == [["rag_assets"], *(layer.split(" | ") for layer in layers)]


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_files_that_pages_name_exist(page: Path) -> None:
    top = "rag_assets|rag_resources|sql|tests|benchmarks|deploy"
    for name in re.findall(rf"`((?:{top})/[\w./-]+)(?:::\w+)?`", page.read_text("utf-8")):
        assert (ROOT / name).exists(), name


def test_the_modules_that_docstrings_name_exist() -> None:
    """A module is named by its package: `core.gate`, `store.notes`."""
    root = ROOT / "rag_resources"
    packages = "|".join(path.name for path in root.iterdir() if (path / "__init__.py").exists())
    missing = [
        (path.name, name)
        for path in SOURCES
        for name in re.findall(rf"`((?:{packages})\.[a-z_]+)[.`]", path.read_text("utf-8"))
        if not list(root.glob(f"{name.replace('.', '/')}*"))
    ]
    assert missing == []
