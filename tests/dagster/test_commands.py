"""`python -m rag_assets`, called wrongly or with a wrong setting: Spanish, and no stack."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from dagster_project import Project, environment

from rag_assets.__main__ import main
from rag_resources.core.model_names import MODEL_CHOICES
from rag_resources.languages.messages import _


class Outcome(NamedTuple):
    """The output and exit code of a command."""

    code: int
    out: str
    err: str


Call = Callable[..., Outcome]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the command in this process."""

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["rag_assets", *arguments])
        with pytest.raises(SystemExit) as exited:
            main()
        assert isinstance(exited.value.code, int)
        return Outcome(exited.value.code, *capsys.readouterr())

    return run


@pytest.mark.parametrize(
    "name",
    ["ollama:bge-m3", "e5_smal", "openai_"],
)
@pytest.mark.parametrize(
    "variable", ["EMBEDDING_MODELS", "NOTE_EMBEDDING_MODEL", "LEGACY_EMBEDDING_MODEL"]
)
def test_a_model_that_is_none_is_told_by_its_setting(
    call: Call, monkeypatch: pytest.MonkeyPatch, variable: str, name: str
) -> None:
    """The command refuses before anything is started, not in the first run."""
    monkeypatch.setenv(variable, name)
    code, out, err = call("run")
    assert (code, out) == (2, "")
    headline, problem = err.strip().splitlines()
    assert headline == "Error: " + _("Some settings are invalid, in the environment or in .env:")
    assert problem == f"  - {variable}: «{name}» no es una de las opciones: {MODEL_CHOICES}"


@pytest.mark.parametrize("url", ["sin-esquema", "postgresql://ana:se/creta@equipo/base"])
def test_a_bad_address_of_dagsters_storage_is_told_without_what_it_says(
    call: Call, database_url: str, tmp_path: Path, url: str
) -> None:
    with environment(RAG_HOME=str(tmp_path), DATABASE_URL=database_url, DAGSTER_PG_URL=url):
        code, out, err = call("run")
    assert (code, out) == (1, "")
    assert err.strip() == "Error: " + _(
        "{variable} is not valid. It must have the form "
        "postgresql://user:password@server:port/database; the signs @ : / ? # % of the password "
        "are written %40 %3A %2F %3F %23 %25."
    ).format(variable="DAGSTER_PG_URL")


def test_dagsters_own_commands_have_the_environment_of_the_instance(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever calls `rag dagster` needs to know neither its home nor its database."""
    monkeypatch.delenv("DAGSTER_HOME")
    asked = ("job", "execute", "-m", "rag_assets.definitions", "-j", "purge_expired")
    command = [sys.executable, "-m", "rag_resources.cli", "dagster", *asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (run,) = project.instance.get_runs()
    assert (run.job_name, run.is_success) == ("purge_expired", True)
