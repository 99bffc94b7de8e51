"""Files of configurations: every problem is named with its file and line."""

from pathlib import Path

import pytest

from rag_resources.configurations import ConfigurationFiles, load_configurations
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.languages.messages import _

VALID = "name: mine\ndescription: Una prueba.\n"


def problems(folder: Path) -> list[str]:
    """Read a folder, and return what is wrong with it."""
    return list(load_configurations([folder]).problems)


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("name: mine\nname: mine\n", "name", 2),
        ("name: mine\ntop_k:\n  final: 5\n  retrieval: 20\n  final: 7\n", "final", 5),
        ("name: mine\nsteps:\n  - {a: 1, b: 2, a: 3}\n", "a", 3),
    ],
)
def test_a_repeated_key_is_refused_where_it_stands(
    tmp_path: Path, text: str, key: str, line: int
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, "utf-8")
    assert problems(tmp_path) == [
        f"{path}: " + _("the key {key} is repeated (line {line})").format(key=key, line=line)
    ]


def test_a_link_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    """Its lines would be quoted as unknown keys."""
    secret = tmp_path / "shadow"
    secret.write_text("root: $6$hash\n", "utf-8")
    folder = tmp_path / "configurations"
    folder.mkdir()
    link = folder / "mine.yaml"
    link.symlink_to(secret)
    [problem] = problems(folder)
    assert problem == _(
        "{path}: is a link that leads out of the folder of configurations; copy the file into it"
    ).format(path=link)
    assert "hash" not in problem


def test_a_wrong_file_is_left_out_and_the_others_are_read(tmp_path: Path) -> None:
    """Each problem has its file, its line and the nearest key; who asks for the file is refused."""
    (tmp_path / "mine.yaml").write_text(VALID, "utf-8")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(
        "name: wrong\ndescription: Mal.\nretrieval:\n  top_k:\n    final: 3\n    retrieva: 9\n"
        "  fusion:\n    method: suma\n",
        "utf-8",
    )
    found = load_configurations([tmp_path, tmp_path / "missing"])
    assert list(found) == ["mine"]
    folder, key, method = found.problems
    assert key.startswith(f"{wrong}: línea 6: retrieval.top_k.retrieva: clave desconocida")
    assert method.startswith(f"{wrong}: línea 8: retrieval.fusion.method: ")
    assert str(tmp_path / "missing") in folder
    assert found.named("mine").name == "mine"
    with pytest.raises(InvalidConfigurationError) as refused:
        found.named("wrong")
    assert refused.value.problems == [folder, key, method]


def test_of_two_files_with_one_name_the_first_counts(tmp_path: Path) -> None:
    for folder, text in (("first", "Una."), ("second", "Otra.")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.yaml").write_text(f"name: mine\ndescription: {text}\n", "utf-8")
    found = load_configurations([tmp_path / "first", tmp_path / "second"])
    assert found["mine"].description == "Una."
    [problem] = found.problems
    assert str(tmp_path / "second" / "mine.yaml") in problem


def test_a_program_that_goes_on_sees_what_was_added_mended_and_removed(tmp_path: Path) -> None:
    files = ConfigurationFiles([tmp_path])
    assert not files.read()
    path = tmp_path / "mia.yaml"
    path.write_text("name: mia\ndescription: x\nretrieval: {strateg: hybrid}\n", "utf-8")
    assert files.read().problems
    path.write_text("name: mia\ndescription: x\nretrieval: {strategy: fulltext}\n", "utf-8")
    assert files.read()["mia"].retrieval.strategy == "fulltext"
    assert files.read() is files.read()
    path.unlink()
    assert not files.read()
