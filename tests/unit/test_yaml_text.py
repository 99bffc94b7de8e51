"""YAML: plain values, or an error that is YAML's, in little time and memory."""

from typing import Any

import pytest
import yaml

from rag_resources.core.yaml_text import load_yaml, problem_of
from rag_resources.languages.messages import _


def doubling(first: str, line: str) -> str:
    """Forty aliases, each of which holds the one before twice."""
    return first + "".join(line.format(new=n + 1, old=n) for n in range(40))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: 2024-02-30", {"a": "2024-02-30"}),
        ("a: &a {x: 1}\nb: {<<: *a, y: 2}", {"a": {"x": 1}, "b": {"x": 1, "y": 2}}),
        ("a: &a [1]\nb: [*a, *a]", {"a": [1], "b": [[1], [1]]}),
    ],
)
def test_what_people_write_is_read(text: str, value: Any) -> None:
    assert load_yaml(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "a: !!int x",
        "a: !!bool x",
        "a: !!timestamp [x]",
        "a: 0b_",
        "9" * 5_000,
        "[" * 1_500,
        "a: &a [*a]",
        "? &a {? *a : b}\n: c",
        doubling("k0: &k0 [x]\n", "k{new}: &k{new} [*k{old}, *k{old}]\n"),
        doubling("k0: &k0 {{x: 1}}\n", "k{new}: &k{new} {{{{<<: [*k{old}, *k{old}]}}}}\n"),
    ],
)
def test_what_has_no_place_in_python_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)


def test_an_alias_that_doubles_without_end_is_named_by_its_line() -> None:
    text = doubling("k0: &k0 [x]\n", "k{new}: &k{new} [*k{old}, *k{old}]\n")
    with pytest.raises(
        yaml.MarkedYAMLError, match=_("a value does not fit its tag, is too long or too deep")
    ) as caught:
        load_yaml(text)
    assert caught.value.problem_mark.line > 10


def test_what_is_no_yaml_is_named_with_its_place() -> None:
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        load_yaml("a:\n  b: 1\n c: 2\n")
    assert problem_of(caught.value) == _(
        "is not valid {kind} (line {line}, column {column})"
    ).format(kind="YAML", line=3, column=2)
