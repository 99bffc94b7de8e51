"""Configuration: any file, environment or filter is accepted, or rejected with a clear message."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_resources.cli.search_options import filters_of
from rag_resources.configurations import load_configuration
from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    parse_retrieval,
    with_overrides,
)
from rag_resources.core.errors import RagError
from rag_resources.core.experiment import MAX_CONFIGURATIONS, expand, parse_experiment
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.core.filters import RetrievalFilters, parse_filters
from rag_resources.core.gate import GateConfig
from rag_resources.evaluation.experiment import load_experiment
from rag_resources.settings import CONFIGURATIONS, Settings, load_settings
from tests.fuzz.bounds import outcome
from tests.fuzz.hostile import any_texts, heaps, json_texts, json_values, mutated, shallow_values

pytestmark = pytest.mark.fuzz

EXPERIMENT = b"""name: Pesos
base: hybrid_weighted
grid:
  retrievers.semantic.weight: [0.3, 0.5, 0.7]
  top_k.retrieval: [20, 50]
configurations:
  larga: {context.sentences_after: 4, fusion: {method: rrf}}
selection: {metric: mrr, folds: 5, seed: 1}
"""
YAML_PIECES = [
    *(b"<<: *a", b"&a ", b"*a", b"!!int x", b"!!float ", b"!!timestamp ", b"!!set {a}"),
    *(b"!!binary x", b"!!python/object:os.system ", b"2024-02-30", b"0x" + b"f" * 3_600, b"1:1"),
    *(
        b".nan",
        b"0b_",
        b"\ntop_k: {final: .inf}",
        b"? [a]",
        b"? {a: b}\n: c",
        b"- ",
    ),
    *(b"{", b"[", b": "),
]
PATHS = [
    *("unit", "model", "strategy", "fusion", "fusion.method", "retrievers.semantic.weight"),
    *(
        "top_k.final",
        "reranking.batch_size",
        "similarity_threshold",
        "context",
        "x",
        "",
        ".",
        "a.b",
    ),
]
FILTERS = ["source", "tags", "note_ids", "created_from", "created_until", "metadata", "x"]


def named_files() -> list[bytes]:
    return [path.read_bytes() for path in sorted(CONFIGURATIONS.iterdir())]


@contextmanager
def written(name: str, raw: bytes) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(raw)
        yield path


def texts_as_bytes() -> st.SearchStrategy[bytes]:
    return heaps().map(lambda text: text.encode("utf-8", "surrogatepass"))


@given(mutated(named_files(), YAML_PIECES) | texts_as_bytes() | st.binary(max_size=300))
def test_any_configuration_file_is_read_or_refused(raw: bytes) -> None:
    with written("prueba.yaml", raw) as path:
        made = outcome(lambda: load_configuration(path))
    assert isinstance(made, RagError | NamedConfiguration)


@given(mutated([EXPERIMENT], YAML_PIECES) | texts_as_bytes())
def test_any_experiment_file_is_read_or_refused(raw: bytes) -> None:
    with written("prueba.yaml", raw) as path:
        made = outcome(lambda: expand(load_experiment(path), RetrievalConfig()))
    assert isinstance(made, RagError) or len(made) <= MAX_CONFIGURATIONS


def odd_keys() -> st.SearchStrategy[str]:
    deep = st.integers(900, 5_000).map(lambda depth: "a." * depth + "b")
    return st.one_of(st.sampled_from(PATHS), st.sampled_from(PATHS), any_texts(), deep)


@given(
    st.dictionaries(
        odd_keys(), st.lists(shallow_values(), max_size=3) | st.just([0] * 50), max_size=8
    ),
    st.dictionaries(
        any_texts(), st.dictionaries(odd_keys(), json_values(), max_size=3), max_size=3
    ),
    st.fixed_dictionaries({}, optional={"selection": json_values(), "name": json_values()}),
)
def test_any_grid_is_expanded_or_refused(
    grid: dict[str, list[Any]], own: dict[str, dict[str, Any]], rest: dict[str, Any]
) -> None:
    raw = {"name": "x", "base": "hybrid", "grid": grid, "configurations": own} | rest
    base = RetrievalConfig()
    made = outcome(lambda: expand(parse_experiment(raw, origin="prueba.yaml"), base))
    assert isinstance(made, RagError) or len(made) <= MAX_CONFIGURATIONS


@given(st.dictionaries(st.sampled_from([*RetrievalConfig.model_fields, "x"]), json_values()))
def test_any_request_configuration_is_taken_or_refused(raw: dict[str, Any]) -> None:
    for made in (
        outcome(lambda: parse_retrieval(raw, origin="petición").config_hash),
        outcome(lambda: with_overrides(RetrievalConfig(), raw).config_hash),
    ):
        assert isinstance(made, RagError) or len(made) == 16


@given(st.dictionaries(st.sampled_from(FILTERS), json_values() | st.lists(json_values())))
def test_any_filters_are_taken_or_refused(raw: dict[str, Any]) -> None:
    made = outcome(lambda: parse_filters(raw).model_dump_json().encode())
    assert isinstance(made, RagError | bytes)


@given(st.dictionaries(any_texts(), json_texts() | any_texts(), max_size=3))
def test_any_metadata_on_the_command_line_is_taken_or_refused(metadata: dict[str, str]) -> None:
    assignments = [f"metadata.{name}={value}" for name, value in metadata.items()]
    made = outcome(lambda: filters_of(assignments, str))
    assert isinstance(made, RagError | RetrievalFilters)


def variables() -> st.SearchStrategy[dict[str, str]]:
    """Variables of ours, of their groups' fields and of fields that no group has."""
    groups = {"EXTRACTION": ExtractionConfig, "GATE": GateConfig}
    nested = [
        f"{group}__{field.upper()}" for group in groups for field in groups[group].model_fields
    ]
    names = [name.upper() for name in Settings.model_fields]
    odd = ["GATE__", "GATE__X", "GATE__MARGIN__X", "GATE____MARGIN", "gate__margin"]
    values = st.one_of(
        st.sampled_from(
            ["", " ", "0", "-1", "1e999", "nan", "inf", "true", "{}", "[]", "null", "~x/y"]
        ),
        st.sampled_from(["0000-01", "9999-12", "٢٠٢٤-٠١", "{", '{"margin": {}}', '{"x": 1}', ",,"]),
        json_texts(),
        any_texts(),
    )
    return st.dictionaries(st.sampled_from([*names, *nested, *nested, *odd]), values, max_size=4)


@contextmanager
def environment(given: Mapping[str, str], dotenv: bytes = b"") -> Iterator[None]:
    """The process with no variables but these, in a folder with this `.env`."""
    before, folder = dict(os.environ), Path.cwd()
    with TemporaryDirectory() as empty:
        try:
            os.environ.clear()
            os.environ["HOME"] = empty
            for name, value in given.items():
                os.environb[name.encode()] = value.replace("\0", "").encode(
                    "utf-8", "surrogatepass"
                )
            os.chdir(empty)
            Path(".env").write_bytes(dotenv)
            yield
        finally:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(before)


@given(variables())
def test_any_environment_is_taken_or_refused(given: dict[str, str]) -> None:
    with environment(given):
        used = outcome(lambda: use(load_settings()))
    assert isinstance(used, RagError | date)


ENV_FILE = b"""# Comentario
GATE__HIT_RATE_AT_10=0.9
export GATE='{"margin": 0.05}'
NOTES_SOURCE="notas/${HOME}" # fin
EMBEDDING_MODELS=e5_small,use_multilingual
"""


@given(mutated([ENV_FILE]))
def test_any_env_file_is_taken_or_refused(raw: bytes) -> None:
    with environment({}, raw):
        used = outcome(lambda: use(load_settings()))
    assert isinstance(used, RagError | date)


def use(settings: Settings) -> date:
    """What everything does first with the settings; the first day of the first month."""
    assert settings.all_models
    assert settings.configuration_folders
    return date.fromisoformat(f"{settings.first_month}-01")
