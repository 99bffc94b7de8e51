"""The environment: defaults, nested variables, every bad one by its name in Spanish."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.errors import InvalidConfigurationError
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
        {
            "CHUNKING__MAX_TOKENS": "64",
            "CHUNKING__MIN_TOKENS": "8",
            "CHUNKING__OVERLAP_TOKENS": "4",
        },
        {"CHUNKING": '{"max_tokens": 64, "min_tokens": 8, "overlap_tokens": 4}'},
        {"CHUNKING": '{"max_tokens": 32, "min_tokens": 8}', "CHUNKING__MAX_TOKENS": "64"}
        | {"CHUNKING__OVERLAP_TOKENS": "4"},
    ],
)
def test_the_sizes_of_chunks_are_variables_of_their_own(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    chunking = ChunkingConfig(max_tokens=64, min_tokens=8, overlap_tokens=4)
    assert load_settings().chunking == chunking


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"CHUNKING__MAX_TOKENS": "muchos", "CHUNKING__OVERLAP_TOKENS": "-1"}, None),
        ({"CHUNKING__MAX_TOKENS": "9000"}, None),
        ({"CHUNKING__MAX_TOKENS": "100"}, ["CHUNKING"]),
        ({"CHUNKING__MAX_TOKNES": "64"}, None),
        ({"CHUNKING": "64"}, None),
        ({"FIRST_MONTH": "ayer"}, None),
        ({"FIRST_MONTH": "2024-13"}, None),
        ({"FIRST_MONTH": "0000-01"}, None),
        ({"RAG_HOME": "~nadie-se-llama-asi/rag"}, None),
        ({"GATE__LATENCY_P95_MS": "0", "GATE__MARGIN": "1"}, None),
        ({"EMBEDDING_MODELS": " , "}, None),
        ({"TENANT": ""}, None),
        ({"NOTES_SOURCE_NAME": "sample"}, None),
        ({"UI_PORT": "65536", "API_PORT": "uno"}, None),
    ],
)
def test_every_bad_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], named: list[str] | None
) -> None:
    found = [problem.partition(": ")[0] for problem in problems_of(monkeypatch, variables)]
    assert found == (named or list(variables))


def test_a_group_that_is_no_json_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    (problem,) = problems_of(monkeypatch, {"CHUNKING": "max_tokens=64"})
    assert "CHUNKING__MAX_TOKENS" in problem


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
