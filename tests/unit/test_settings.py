"""The environment: defaults, nested variables, every bad one by its name in Spanish."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.gate import GateConfig
from rag_resources.languages.messages import _
from rag_resources.settings import Settings, load_settings, unknown_variables

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def only_our_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the machine's variables nor a `.env` file of this folder count."""
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def problems_of(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> list[str]:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidConfigurationError) as caught:
        load_settings()
    assert caught.value.message.startswith(
        _("Some settings are invalid, in the environment or in .env:") + "\n  - "
    )
    return caught.value.problems


def test_nothing_set_is_the_documented_default() -> None:
    settings = load_settings()
    assert settings.chunking == ChunkingConfig()
    assert (settings.database_url, settings.redis_url, settings.llm_model) == (None, None, None)
    assert settings.embedding_models == ("e5_small", "use_multilingual")
    assert settings.first_month == "2024-11"
    assert settings.rag_home == Path.cwd() / ".rag"


def test_the_sample_is_for_who_names_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample never mixes with a user's own notes, questions or tables."""
    assert load_settings().sample_by_default
    for name, value in (
        ("DATABASE_URL", "postgresql://a/b"),
        ("GOLDEN_SOURCE", ""),
        ("NOTES_SOURCE", ""),
    ):
        with monkeypatch.context() as only:
            only.setenv(name, value)
            settings = load_settings()
            assert not settings.sample_by_default
            assert (settings.notes_source, settings.golden_source) == (None, None)
    monkeypatch.setenv("NOTES_SOURCE", "notas")
    settings = load_settings()
    assert not settings.sample_by_default
    assert (settings.notes_source, settings.golden_source) == (Path.cwd() / "notas", None)


@pytest.mark.parametrize(
    "variables",
    [
        {"GATE__MARGIN": "0.05", "GATE__FALSE_ANSWERS": "0.3"},
        {"GATE": '{"margin": 0.05, "false_answers": 0.3}'},
        {"GATE": '{"margin": 0.07, "false_answers": 0.3}', "GATE__MARGIN": "0.05"},
    ],
)
def test_the_fields_of_a_group_are_variables_of_their_own(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    gate = load_settings().gate
    assert gate == GateConfig(margin=0.05, false_answers=0.3)
    assert (gate.citations_block, gate.false_answers_block) == (False, True), "what is set blocks"


@given(st.integers(16, 8192), st.integers(16, 4096))
def test_the_sizes_of_chunks_follow_from_one(longest: int, target: int) -> None:
    chunking = load_settings(chunking_max_tokens=longest, chunking_target=target).chunking
    assert (chunking.max_tokens, chunking.target) == (longest, target)


@pytest.mark.parametrize(
    "variables",
    [
        {"CHUNKING_MAX_TOKENS": "muchos", "CHUNKING_TARGET": "-1"},
        {"CHUNKING_MAX_TOKENS": "9000"},
        {"GATE__MARGNI": "0.05"},
        {"GATE": "64"},
        {"FIRST_MONTH": "ayer"},
        {"FIRST_MONTH": "2024-13"},
        {"FIRST_MONTH": "0000-01"},
        {"RAG_HOME": "~nadie-se-llama-asi/rag"},
        {"GATE__LATENCY_P95_MS": "0", "GATE__MARGIN": "1"},
        {"EMBEDDING_MODELS": " , "},
        {"TENANT": ""},
        {"NOTES_SOURCE_NAME": "sample"},
        {"UI_PORT": "65536", "API_PORT": "uno"},
    ],
)
def test_every_bad_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    found = [problem.partition(": ")[0] for problem in problems_of(monkeypatch, variables)]
    assert found == list(variables)


def test_a_group_that_is_no_json_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (problem,) = problems_of(monkeypatch, {"GATE": "margin=0.05"})
    assert "GATE__MARGIN" in problem


def test_a_file_of_variables_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"TENANT=a\xf1o\n")
    with pytest.raises(InvalidConfigurationError, match=r"\.env no es texto UTF-8"):
        load_settings()


def test_names_in_the_file_that_are_no_settings_are_listed(tmp_path: Path) -> None:
    assert unknown_variables() == []
    (tmp_path / ".env").write_text("NOTE_SOURCE=1\ntenant=1\nGATE__MARGN=1\n", "utf-8")
    assert unknown_variables() == ["NOTE_SOURCE"]
    (tmp_path / ".env").write_bytes(b"TENANT=a\xf1o\n")
    assert unknown_variables() == []


def test_processes_go_on_with_the_settings_of_their_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder without the file, whose variables of other programs are not passed on."""
    elsewhere = tmp_path / "otra"
    elsewhere.mkdir()
    monkeypatch.setenv("LLM_MODEL", "ollama:a")
    lines = ["tenant=ana", "GATE__MARGIN=0.1", "LLM_MODEL=ollama:b", "NOTES_SOURCE=notas", "SUYA=1"]
    (tmp_path / ".env").write_text("\n".join([*lines, "GOLDEN_SOURCE="]), "utf-8")
    environment = load_settings().lasting_environment()
    show = "from rag_resources.settings import load_settings as l; print(l().model_dump_json())"
    shown = [
        subprocess.run(
            [sys.executable, "-c", show],
            cwd=folder,
            env={**env, "PYTHONPATH": str(ROOT)},
            text=True,
            capture_output=True,
            check=True,
        ).stdout
        for folder, env in ((tmp_path, os.environ), (elsewhere, environment))
    ]
    assert shown[0] == shown[1]
    assert json.loads(shown[1])["notes_source"] == str(tmp_path / "notas")
    assert "SUYA" not in environment
