"""The wheel, installed into an environment of its own, works without the checkout.

The environment has the packages of this one, but the project itself comes from the wheel only.
Every Python process in it ends at once if it opens or lists a file of the checkout.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

import pytest

from rag_resources.database.schema import schema_version
from rag_resources.packaged import product_version

ROOT = Path(__file__).parents[2]
PACKAGES = Path(sysconfig.get_paths()["purelib"])
SOURCES = ("rag_assets", "rag_resources", "sql")
FILES = ("pyproject.toml", "README.md", "LICENSE", "dagster.yaml", "workspace.yaml")
NOTE = "El ascensor de la escalera no funciona desde el apagón, y la junta ha votado arreglarlo."

GUARD = """
import os, sys
def _refuse(event, arguments, checkout={checkout!r}, allowed={allowed!r}):
    if event not in ("open", "os.listdir", "os.scandir") or not isinstance(arguments[0], str):
        return
    path = os.path.realpath(arguments[0])
    if path.startswith(checkout) and not path.startswith(allowed):
        os.write(2, f"reads the checkout: {{path}}".encode())
        os._exit(99)
sys.addaudithook(_refuse)
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the sources, with the tools of this environment."""
    copy, built = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        shutil.copytree(
            ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in FILES:
        shutil.copyfile(ROOT / name, copy / name)
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")
    pip(*("wheel", *options, "--wheel-dir", str(built), str(copy)))
    [made] = built.glob("*.whl")
    return made


def pip(*arguments: str) -> None:
    """Run pip; what it says is shown if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        # A checkout on the path would count as the project, installed already.
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def run(wheel: Path) -> Iterator[Run]:
    """Install the wheel, and run programs of its environment in an empty folder."""
    with TemporaryDirectory(prefix="rag-wheel-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        environment, work = place / "environment", place / "work"
        work.mkdir()
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True
        )
        python = environment / "bin" / "python"
        pip("--python", str(python), "install", "--no-deps", "--no-index", "--quiet", str(wheel))
        [packages] = environment.glob("lib/python*/site-packages")
        # Not as a folder of packages whose .pth files count: one of them is our editable install.
        (packages / "others.pth").write_text(f"{PACKAGES}\n", "utf-8")
        guard = GUARD.format(checkout=f"{ROOT.resolve()}/", allowed=str(PACKAGES.resolve()))
        (packages / "guard.py").write_text(guard, "utf-8")
        (packages / "guard.pth").write_text("import guard\n", "utf-8")
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "RAG_HOME": str(work / "home"),
            "EMBEDDING_MODELS": "use_multilingual",
        }

        def call(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [str(environment / "bin" / program), *arguments],
                cwd=work,
                env=variables,
                capture_output=True,
                text=True,
                check=False,
            )

        yield call
        call("rag", "down")


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a program wrote."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_has_every_file_of_the_packages(wheel: Path) -> None:
    """Whatever its kind, `sql/` included; and the licence."""
    expected = {
        path.relative_to(ROOT).as_posix()
        for package in ("rag_assets", "rag_resources")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    expected |= {
        f"rag_resources/{path.relative_to(ROOT).as_posix()}"
        for path in (ROOT / "sql").rglob("*.sql")
    }
    with ZipFile(wheel) as archive:
        found = set(archive.namelist())
    assert not expected - found
    assert [name for name in found if name.endswith("/licenses/LICENSE")]
    assert {name.partition("/")[0] for name in found if ".dist-info" not in name} == {
        *("rag_assets", "rag_resources"),
    }


def test_the_guard_ends_who_reads_the_checkout(run: Run) -> None:
    """Or the other tests would prove nothing."""
    done = run("python", "-c", f"open({str(ROOT / 'pyproject.toml')!r})")
    assert (done.returncode, done.stderr.partition(":")[0]) == (99, "reads the checkout")
    place = succeeded(run("python", "-c", "import rag_resources; print(rag_resources.__file__)"))
    assert "site-packages" in place
    assert not place.startswith(str(PACKAGES))


def test_the_version_is_told(run: Run) -> None:
    said = succeeded(run("rag", "--version")).strip()
    assert said == f"brain-sync-rag {product_version()} (esquema {schema_version()})"


def test_notes_are_ingested_and_found(run: Run) -> None:
    """By the database it brings: `rag up`, `rag ingest`, `rag retrieve`."""
    succeeded(run("python", "-c", f"open('nota.md', 'w').write({NOTE!r})"))
    succeeded(run("rag", "up"))
    succeeded(run("rag", "ingest", "nota.md"))
    answer = json.loads(succeeded(run("rag", "retrieve", "¿Qué pasa con el ascensor?", "--json")))
    assert answer["results"][0]["content"] == NOTE


def test_dagster_loads_the_definitions(run: Run) -> None:
    """By the command that a release checks them with."""
    said = run("python", "-m", "dagster", "definitions", "validate", "-m", "rag_assets.definitions")
    assert said.returncode == 0, said.stdout + said.stderr
    assert "Validation successful" in said.stdout + said.stderr


def test_the_instance_comes_from_the_default_that_is_packaged(run: Run) -> None:
    """And the sample and the configurations are there."""
    code = """
from rag_assets.instance import WORKSPACE, prepare
from rag_resources.settings import CONFIGURATIONS, SAMPLE, load_settings

settings = load_settings()
prepare(settings, migrating=True)
assert (settings.instance_folder / "dagster.yaml").read_text().startswith("#")
assert "rag_assets.definitions" in WORKSPACE.read_text()
assert len(list((SAMPLE / "notes").rglob("*.md"))) > 200
assert (CONFIGURATIONS / "hybrid_weighted.yaml").is_file()
"""
    succeeded(run("python", "-c", code))
