"""`python -m rag_assets`, called wrongly or with a wrong setting: Spanish, and no stack."""

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import dagster_project  # noqa: F401 - the definitions are made with the tests' configurations
import pytest

from rag_assets.__main__ import main
from rag_resources.providers.registry import MODEL_NAMES


class Outcome(NamedTuple):
    """What a command left behind."""

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


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["ui", "--help"]])
def test_the_help_is_spanish(call: Call, arguments: Sequence[str]) -> None:
    code, out, err = call(*arguments)
    assert (code, err) == (0, "")
    assert out.startswith("Uso: python -m rag_assets")
    assert "Muestra esta ayuda y termina." in out


def test_a_wrong_call_is_told_what_there_is(call: Call) -> None:
    unknown = call("runn")
    assert (unknown.code, unknown.out) == (2, "")
    assert "No existe la orden «runn». Las que hay son: run, ui." in unknown.err
    assert "No existe la opción «--forze»." in call("run", "--forze").err
    nothing = call()
    assert (nothing.code, nothing.out) == (2, "")
    assert nothing.err.startswith("Uso: python -m rag_assets [OPCIONES] ORDEN")


@pytest.mark.parametrize("name", ["ollama:bge-m3", "e5_smal"])
@pytest.mark.parametrize(
    "variable", ["EMBEDDING_MODELS", "NOTE_EMBEDDING_MODEL", "LEGACY_EMBEDDING_MODEL"]
)
def test_a_model_that_is_none_is_told_by_its_setting(
    call: Call, monkeypatch: pytest.MonkeyPatch, variable: str, name: str
) -> None:
    """Before anything is started: not by the first run that needs it."""
    monkeypatch.setenv(variable, name)
    code, out, err = call("run")
    assert (code, out) == (2, "")
    headline, problem = err.strip().splitlines()
    assert headline == "Error: Hay variables de entorno con valores no válidos:"
    known = ", ".join(MODEL_NAMES)
    assert problem == f"  - {variable}: «{name}» no es una de las opciones: {known}"
