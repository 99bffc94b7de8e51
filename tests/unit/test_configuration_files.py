"""Files of configurations: every problem is named with its file and line."""

from pathlib import Path

import pytest

from rag_resources.configurations import ConfigurationFiles, load_configurations
from rag_resources.core.configuration import parse_retrieval
from rag_resources.core.configuration_notices import notices
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.languages.messages import _
from rag_resources.settings import CONFIGURATIONS

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


def test_a_key_may_stand_in_several_mappings(tmp_path: Path) -> None:
    text = VALID + "retrieval: {strategy: semantic}\n"
    (tmp_path / "mine.yaml").write_text(text, "utf-8")
    assert list(load_configurations([tmp_path])) == ["mine"]


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


def test_a_link_within_the_folder_is_read(tmp_path: Path) -> None:
    """As where a cluster mounts its configuration: `mine.yaml` → `..data/mine.yaml`."""
    data = tmp_path / "..data"
    data.mkdir()
    (data / "mine.yaml").write_text(VALID, "utf-8")
    (tmp_path / "mine.yaml").symlink_to(data / "mine.yaml")
    assert list(load_configurations([tmp_path])) == ["mine"]


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


def test_wrong_names_are_told_with_the_other_problems_of_a_file(tmp_path: Path) -> None:
    """Whoever mends a file mends it once."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(
        "name: other\ndescription: Mal.\nretrieval:\n  model: e5_smal\n  top_k:\n    retrieva: 9\n",
        "utf-8",
    )
    name, model, key = problems(tmp_path)
    assert name == f"{wrong}: " + _(
        "name: must be the name of the file (“{stem}”), not “{name}”"
    ).format(stem="wrong", name="other")
    assert model.startswith(f"{wrong}: línea 4: retrieval.model: «e5_smal» no es una de")
    assert key.startswith(f"{wrong}: línea 6: retrieval.top_k.retrieva: clave desconocida")


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


def test_a_weight_or_depth_that_may_surprise_is_told() -> None:
    def told(**retrieval: object) -> list[str]:
        return notices(parse_retrieval(retrieval, origin="x"))

    assert told() == []
    uneven = {"semantic": {"weight": 0.9}, "fulltext": {"weight": 0.3}}
    (weights,) = told(retrievers=uneven)
    assert "suman 1.2" in weights
    assert "semantic 0.750, fulltext 0.250" in weights
    assert told(strategy="semantic", retrievers=uneven) == [], "one retriever has no proportion"

    deep = {"retrieval": 20, "reranking": 30}
    (depth,) = told(strategy="hybrid+rerank", top_k=deep)
    assert "(30)" in depth
    assert "(20)" in depth
    assert told(strategy="hybrid", top_k=deep) == []


def test_the_configurations_of_the_product_surprise_nobody() -> None:
    found = load_configurations([CONFIGURATIONS]).values()
    assert {item.name: notices(item.retrieval) for item in found} == {
        item.name: [] for item in found
    }
