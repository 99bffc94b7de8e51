"""`dagster.yaml` of a Dagster home: when it is written, replaced or left alone."""

from pathlib import Path

import pytest
import yaml

from rag_assets.instance_file import (
    DEFAULT,
    RECORD,
    digest,
    provide_instance_file,
)
from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _

ROOT = Path(__file__).parents[2]
OWN = "storage:\n  sqlite:\n    base_dir: /tmp/mine\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file of a home is."""
    return tmp_path / "dagster" / "dagster.yaml"


def provide(path: Path) -> list[str]:
    return provide_instance_file(path.parent, home=path.parent.parent)


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_the_default_is_written_where_there_is_none(path: Path) -> None:
    """And nothing happens at the next start."""
    assert provide(path) == []
    assert path.read_bytes() == DEFAULT.read_bytes()
    first = path.stat().st_mtime_ns
    assert provide(path) == []
    assert path.stat().st_mtime_ns == first


def test_a_file_of_the_users_own_is_never_touched(path: Path) -> None:
    written(path, OWN)
    for __ in range(2):
        assert provide(path) == []
        assert path.read_text("utf-8") == OWN


def test_a_newer_default_is_told_once_and_not_forced(path: Path) -> None:
    """The notice is for users with their own file, and names both files."""
    written(path, OWN)
    (path.parent.parent / RECORD).write_text(digest(b"an older default"), "utf-8")
    assert provide(path) == [
        _(
            "{path} is yours and is left alone. The product's Dagster configuration has changed: "
            "compare it with {default}. This notice is not repeated."
        ).format(path=path, default=DEFAULT)
    ]
    assert provide(path) == []
    assert path.read_text("utf-8") == OWN


def test_an_older_default_that_nobody_changed_is_replaced(path: Path) -> None:
    """Recognised by the digest recorded when it was written."""
    older = "telemetry:\n  enabled: false\n"
    written(path, older)
    (path.parent.parent / RECORD).write_text(digest(older.encode()), "utf-8")
    assert provide(path) == [
        _(
            "{path} was brought up to date: it was an earlier version, unchanged, of the "
            "product's own."
        ).format(path=path)
    ]
    assert path.read_bytes() == DEFAULT.read_bytes()
    assert provide(path) == []


def test_the_default_names_modules_that_are_there() -> None:
    default = yaml.safe_load(DEFAULT.read_text("utf-8"))
    for part in ("run_coordinator", "run_launcher"):
        module = ROOT.joinpath(*default[part]["module"].split(".")).with_suffix(".py")
        assert f"class {default[part]['class']}" in module.read_text("utf-8")


def test_a_home_that_cannot_be_used_is_told(path: Path) -> None:
    path.parent.write_text("a file in the place of the folder", "utf-8")
    with pytest.raises(InvalidParameterError) as refused:
        provide(path)
    assert refused.value.message == _(
        "{path} cannot be read or written. Check the permissions or choose another folder in "
        "DAGSTER_HOME."
    ).format(path=path)
