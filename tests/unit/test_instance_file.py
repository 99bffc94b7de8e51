"""`dagster.yaml` of a Dagster home: when it is written, replaced or left alone."""

from pathlib import Path

import pytest
import yaml

from rag_assets.instance import INSTANCE, provide_instance_file
from rag_resources.core.errors import InvalidParameterError

ROOT = Path(__file__).parents[2]
OWN = "storage:\n  sqlite:\n    base_dir: /tmp/mine\n"
FIRST_LINE = INSTANCE.read_text("utf-8").partition("\n")[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file of a home is."""
    return tmp_path / "dagster" / "dagster.yaml"


def test_the_default_is_written_where_there_is_none(path: Path) -> None:
    """And nothing happens at the next start."""
    provide_instance_file(path.parent)
    assert path.read_bytes() == INSTANCE.read_bytes()
    first = path.stat().st_mtime_ns
    provide_instance_file(path.parent)
    assert path.stat().st_mtime_ns == first


def test_a_file_without_the_first_line_of_the_default_is_the_users_own(path: Path) -> None:
    path.parent.mkdir()
    path.write_text(OWN, "utf-8")
    provide_instance_file(path.parent)
    assert path.read_text("utf-8") == OWN
    path.write_text(f"{FIRST_LINE}\n{OWN}", "utf-8")
    provide_instance_file(path.parent)
    assert path.read_bytes() == INSTANCE.read_bytes()


def test_the_default_names_modules_that_are_there() -> None:
    default = yaml.safe_load(INSTANCE.read_text("utf-8"))
    for part in ("run_coordinator", "run_launcher"):
        module = ROOT.joinpath(*default[part]["module"].split(".")).with_suffix(".py")
        assert f"class {default[part]['class']}" in module.read_text("utf-8")


def test_a_home_that_cannot_be_used_is_told(path: Path) -> None:
    path.parent.write_text("a file in the place of the folder", "utf-8")
    with pytest.raises(InvalidParameterError) as refused:
        provide_instance_file(path.parent)
    assert refused.value.context["path"] == path
