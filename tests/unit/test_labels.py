"""The names of figures on Dagster's pages: in both languages, each its own, and never forgotten."""

import ast
import re
from pathlib import Path

import dagster as dg
import pytest

from rag_assets.labels import labelled, stage_times
from rag_resources.core.retrievers import RetrieverName
from rag_resources.languages.files import read
from rag_resources.languages.labels import METRIC_WORDS, label
from rag_resources.languages.messages import OPERATORS

ROOT = Path(__file__).parents[2]
SECTIONS = ("fields", "stages", "prefixes", "suffixes")


def words(language: str, section: str) -> dict[str, str]:
    return dict(read(language, "labels.toml")[section])


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("language", OPERATORS)
def test_operators_read_every_name_in_their_language(language: str, section: str) -> None:
    assert list(words(language, section)) == list(words("es", section))


@pytest.mark.parametrize("language", OPERATORS)
def test_no_two_fields_have_one_name(language: str) -> None:
    """One of two would hide the other; names are words, not identifiers."""
    names = list(words(language, "fields").values())
    assert sorted(set(names)) == sorted(names)
    assert not set(names) & set(METRIC_WORDS.values())
    assert [name for name in names if "_" in name.replace("Hit_Rate", "")] == []


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("hit_rate_at_10", "Hit_Rate@10"),
        ("hit_rate_at_10_low", "Hit_Rate@10: límite inferior (IC 95 %)"),
        ("page_quality_mean", "calidad de las páginas (media)"),
        ("pages_per_second", "páginas por segundo"),
        ("pending_e5_small", "notas pendientes de e5_small"),
        ("vectors_per_minute_e5_small", "vectores por minuto de e5_small"),
        ("failed_documents_leyendo", "documentos con fallo: leyendo"),
        ("notes_before", "notas antes"),
        ("palabra", "palabra"),
    ],
)
def test_a_field_may_be_made_of_another_one(field: str, name: str) -> None:
    assert label(field) == name


def test_fractions_have_few_decimals_and_stay_numbers() -> None:
    """Times, speeds and percentages two, metrics and shares four."""
    shown = labelled(
        {
            "hit_rate_at_10": 0.8712121212121212,
            "latency_p95_ms": 131.123456,
            "seconds": 0.123456,
            "notes_per_second": 12.3456,
            "percent_migrated": 33.3333333,
            "questions": 132,
            "changed": True,
            "model": "e5_small",
        }
    )
    assert list(shown.values()) == [0.8712, 131.12, 0.12, 12.35, 33.33, 132, True, "e5_small"]
    assert stage_times({"rerank": 1.2345}) == {"ms de reordenación": 1.23}


def test_every_stage_has_a_name() -> None:
    """Those of the code, and the retrievers, which are stages as well."""
    sources = [path.read_text("utf-8") for path in (ROOT / "rag_resources").rglob("*.py")]
    named = re.compile(r"(?:stages\.(?:run|optional)|\bdegrade)\(\s*\"([a-z_]+)\"")
    stages = {name for text in sources for name in named.findall(text)} | set(RetrieverName)
    assert {"transform", "rerank", "semantic"} <= stages
    assert stages - words("es", "stages").keys() == set()


def _keys(tree: ast.AST) -> set[str]:
    """Return the constant keys of the dictionaries in a piece of code."""
    return {
        key.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


def test_an_empty_list_is_shown_as_a_dash() -> None:
    told = labelled(
        {"missing_files": dg.MetadataValue.md(""), "by_document": dg.MetadataValue.md("x")}
    )
    assert told[label("missing_files")] == "–"
    assert told[label("by_document")] == dg.MetadataValue.md("x")


def test_everything_that_assets_checks_and_jobs_tell_passes_through_the_names() -> None:
    """No literal of the code is shown: each such dictionary is given to `labelled`."""
    bare: list[str] = []
    unnamed: set[str] = set()
    for path in (ROOT / "rag_assets").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called == "labelled":
                unnamed |= {key for key in _keys(node) if label(key) == key and "_" in key}
                continue
            told = [item.value for item in node.keywords if item.arg == "metadata"]
            if called.endswith((".add_output_metadata", ".add_asset_metadata")):
                told += node.args[:1]
            bare += [
                f"{path.relative_to(ROOT)}:{value.lineno}"
                for value in told
                if isinstance(value, ast.Dict) and None not in value.keys and _keys(value)
            ]
    assert bare == []
    assert unnamed == set()
