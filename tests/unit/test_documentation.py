"""Checks that everything named by README, .env.example and the list of properties exists."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from rag_resources.cli.main import app
from rag_resources.core.configuration import (
    RetrievalConfig,
    parse_configuration,
    parse_retrieval,
)
from rag_resources.core.experiment import expand, parse_experiment
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.core.gate import GateConfig
from rag_resources.settings import Settings, load_settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONFIGURATION = (DOCS / "configuration.md").read_text("utf-8")
EVALUATING = (DOCS / "evaluating.md").read_text("utf-8")
GRAPH = (DOCS / "graph.md").read_text("utf-8")
EXAMPLE = (ROOT / ".env.example").read_text("utf-8")
GROUPS = {
    "extraction": ExtractionConfig,
    "gate": GateConfig,
}
NESTED = {f"{name}__{field}" for name, group in GROUPS.items() for field in group.model_fields}
SETTINGS = {name.upper() for name in Settings.model_fields.keys() - GROUPS.keys() | NESTED}
DEFAULT = RetrievalConfig()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


def assignments() -> dict[str, str]:
    """The variables of the example, commented out or not."""
    return dict(re.findall(r"^(?:# )?([A-Z0-9_]+)=(.*)$", EXAMPLE, re.MULTILINE))


def test_the_example_environment_names_every_setting_once_and_nothing_else() -> None:
    assert assignments().keys() == SETTINGS
    assert len(re.findall(r"^(?:# )?[A-Z0-9_]+=", EXAMPLE, re.MULTILINE)) == len(assignments())


def test_the_example_environment_is_valid_and_shows_the_defaults(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A default that is empty or depends on the machine is shown by an example instead."""
    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    defaults = load_settings()
    lines = (f"{name}={value}\n" for name, value in assignments().items())
    Path(".env").write_text("".join(lines), "utf-8")
    shown = load_settings()
    for name in Settings.model_fields:
        default = getattr(defaults, name)
        if default is not None and name not in {"notes_source", "golden_source"}:
            assert getattr(shown, name) == default, name


def test_every_variable_of_the_docs_is_a_setting() -> None:
    rows = re.findall(r"^\| (`[A-Z_].*?) \|", CONFIGURATION, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([A-Z0-9_]{4,})`", row)}
    assert len(named) > 10
    assert named <= SETTINGS


def named_commands(text: str) -> list[str]:
    """The calls of `rag` in a page's blocks and in its sentences."""
    blocks = "\n".join(re.findall(r"```(?:console|sh|)\n(.*?)```", text, re.DOTALL))
    calls = re.findall(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*rag (.+)", blocks, re.MULTILINE)
    return [*calls, *re.findall(r"`rag ([^`]+)`", re.sub(r"\n *", " ", text))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_that_a_page_names_exist_with_their_options(page: Path) -> None:
    """Also those that no test runs."""
    root, missing = get_command(app), []
    for call in named_commands(page.read_text("utf-8")):
        command, known = root, {name for item in root.params for name in item.opts}
        for word in shlex.split(call):
            if word in getattr(command, "commands", {}):
                command = command.commands[word]  # type: ignore[attr-defined]
                known |= {
                    name for item in command.params for name in (*item.opts, *item.secondary_opts)
                }
            elif hasattr(command, "commands") or word.startswith("--"):
                missing += [call] * (
                    word not in known and "ignore_unknown_options" not in command.context_settings
                )
    assert missing == []


def test_the_files_of_the_docs_are_valid() -> None:
    [experiment] = re.findall(r"```yaml\n(.*?)```", EVALUATING, re.DOTALL)
    assert len(expand(parse_experiment(yaml.safe_load(experiment), origin="docs"), DEFAULT)) == 6
    [text] = re.findall(r"```yaml\n(.*?)```", CONFIGURATION, re.DOTALL)
    named = parse_configuration(yaml.safe_load(text), origin="docs")
    assert named.retrieval.reranks
    told = yaml.safe_load(text)["retrieval"].keys()
    assert RetrievalConfig.model_fields.keys() - told == {"graph"}, "has a page of its own"
    assert f"in {named.name}.yaml" in text
    part, experiment = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", GRAPH, re.DOTALL))
    assert parse_retrieval(part["retrieval"], origin="docs").searches_graph
    tried = expand(parse_experiment(experiment, origin="docs"), DEFAULT)
    assert [config.searches_graph for config in tried.values()] == [False, *[True] * 4]


def test_the_pages_are_short() -> None:
    words = {page.name: len(page.read_text("utf-8").split()) for page in DOCS.glob("*.md")}
    readme = len((ROOT / "README.md").read_text("utf-8").split())
    assert readme <= 700
    assert [name for name, count in words.items() if count > 2_000] == []
    assert sum(words.values()) + readme <= 20_000


def test_the_links_of_the_pages_lead_somewhere() -> None:
    """To files that exist, and to headings of them."""
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
            target, _, heading = link.partition("#")
            if "://" in target:
                continue
            path = page.parent / target if target else page
            assert path.exists(), (page.name, link)
            if heading:
                headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
                slugs = {
                    re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings
                }
                assert heading in slugs, (page.name, link)


def test_every_property_has_a_hypothesis_test_that_carries_its_number() -> None:
    tested = set()
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            numbers = re.match(r"test_property_(\d+)(?:_and_(\d+))?_", node.name)
            if numbers and any("given(" in ast.unparse(each) for each in node.decorator_list):
                tested |= {int(number) for number in numbers.groups() if number}
    assert tested == {*range(1, 63), 64, 65}  # 63 is about a part that is not built yet
