"""Sentences in the code, their translations, and texts made of them."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po

from rag_resources.core.errors import (
    InvalidParameterError,
)
from rag_resources.core.query import check_language
from rag_resources.languages.files import LANGUAGES
from rag_resources.languages.formats import day
from rag_resources.languages.messages import (
    OPERATORS,
    _,
    catalogue,
    ngettext,
    render,
    restored,
    to_stored,
)

ROOT = Path(__file__).parents[2]
MAPPINGS = {
    each["pattern"].removeprefix("**"): (each["method"], each)
    for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["babel"]["mappings"]
}
TRANSLATED = ("es", "fr")


def sentences(path: Path) -> Iterator[str]:
    """Yield the English sentences of a file, as `make messages` finds them."""
    method, options = MAPPINGS[path.suffix]
    options = {name: str(value) for name, value in options.items()}
    for _line, found, *_others in extract_from_file(method, path, options=options):
        yield found if isinstance(found, str) else found[0]


@cache
def in_the_code() -> frozenset[str]:
    files = (
        path
        for package in ("rag_resources", "rag_assets")
        for path in (ROOT / package).rglob("*.*")
        if path.suffix in MAPPINGS
    )
    return frozenset(each for path in files for each in sentences(path))


def placeholders(template: str) -> set[str]:
    return {name for _literal, name, *_rest in Formatter().parse(template) if name}


def test_every_sentence_is_in_spanish_and_no_other() -> None:
    """`make messages` brings the file up to date; the translation is for a person."""
    assert len(in_the_code()) > 300
    assert catalogue("es").keys() == in_the_code()


READ_WITH_ANSWERS = [
    "rag_resources/api/page/*.*",
    "rag_resources/application/confidence.py",
    "rag_resources/application/wiring.py",
    "rag_resources/cli/answer.py",
    "rag_resources/cli/retrieve.py",
    "rag_resources/core/answers.py",
    "rag_resources/core/configuration.py",
    "rag_resources/core/filters.py",
    "rag_resources/core/fusion_config.py",
    "rag_resources/core/query.py",
    "rag_resources/core/retrievers.py",
    "rag_resources/core/validation.py",
    "rag_resources/retrieval/**/*.py",
    "rag_resources/store/models.py",
]
"""Modules whose sentences reach readers of answers."""
FOR_OPERATORS = {
    "overlap_tokens must be less than max_tokens",
    "min_tokens must be less than max_tokens",
    "must be min <= target <= max, min < max and overlap < max",
    "The model “{model}” gives vectors of {found} components, and the stored ones have {expected}.",
    "The model “{model}” has other weights, prefixes or another dimension than when it was "
    "registered. Give it another name to index with it while the former one goes on serving.",
}


def test_what_readers_of_answers_see_is_in_french() -> None:
    read = {
        each
        for pattern in READ_WITH_ANSWERS
        for path in ROOT.glob(pattern)
        if path.suffix in MAPPINGS
        for each in sentences(path)
    }
    assert len(read) > 60
    assert sorted(read - FOR_OPERATORS - catalogue("fr").keys()) == []


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_catalogue_is_read_as_babel_reads_it(language: str) -> None:
    path = ROOT / "rag_resources/languages" / language / "messages.po"
    with path.open("rb") as file:
        entries = [each for each in read_po(file, locale=language) if each.id]
    assert not any(each.fuzzy for each in entries)
    strings = {
        (each.id if isinstance(each.id, str) else each.id[0]): (
            (each.string,) if isinstance(each.string, str) else tuple(each.string)
        )
        for each in entries
    }
    assert catalogue(language) == {msgid: forms for msgid, forms in strings.items() if all(forms)}


@pytest.mark.parametrize("language", TRANSLATED)
def test_placeholders_are_the_same_in_every_language(language: str) -> None:
    differ = {
        msgid: form
        for msgid, forms in catalogue(language).items()
        for form in forms
        if "{fusion:" not in msgid  # an example of what a person writes
        if not placeholders(form) <= placeholders(msgid) | {"count"}
        or (len(forms) == 1 and placeholders(form) != placeholders(msgid))
    }
    assert differ == {}


@pytest.mark.parametrize(
    ("environment", "said"),
    [({"RAG_LANG": "en"}, "Usage: rag"), ({"RAG_LANG": "es"}, "Uso: rag"), ({}, "Usage: rag")],
    ids=["english", "spanish", "from .env"],
)
def test_operators_choose_their_language(
    environment: dict[str, str], said: str, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("RAG_LANG=en\n")
    done = subprocess.run(
        [sys.executable, "-m", "rag_resources.cli", "--help"],
        env={"PATH": os.environ["PATH"], **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(said)
    assert set(OPERATORS) == {"es", "en"}


ONE, MANY = "{queries} question", "{queries} questions"


@pytest.mark.parametrize(
    ("count", "spanish", "french"),
    [
        (0, "0 preguntas", "0 question"),
        (1, "1 pregunta", "1 question"),
        (2, "2 preguntas", "2 questions"),
    ],
)
def test_a_sentence_chooses_between_singular_and_plural(
    count: int, spanish: str, french: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {
        "es": {ONE: ("{queries} pregunta", "{queries} preguntas")},
        "fr": {ONE: ("{queries} question", "{queries} questions")},
        "en": {},
    }
    monkeypatch.setattr("rag_resources.languages.messages.catalogue", own.__getitem__)
    said = ngettext(ONE, MANY, count).format(queries=count)
    for text in (said, restored(to_stored(said))):
        assert text == spanish
        assert render(text, "fr") == french
        assert render(text, "en") == (f"{count} question" if count == 1 else f"{count} questions")


def test_numbers_and_dates_are_written_as_in_the_language() -> None:
    """A number whose sentence gives its decimals; what a reader types back stays as it is."""
    scores = _("fusion {before:.3f}, re-ranking {score:.3f}").format(before=0.5, score=0.25)
    assert render(scores, "es") == "fusión 0,500, reordenación 0,250"
    assert render(scores, "fr") == "fusion 0,500, reclassement 0,250"
    assert render(scores, "en") == "fusion 0.500, re-ranking 0.250"
    took = _("Passages: {count}, in {latency_ms:.0f} ms").format(count=1234, latency_ms=12345.6)
    assert render(took, "es") == "Pasajes: 1234, en 12.346 ms"
    assert render(took, "fr") == "Passages : 1234, en 12\u202f346 ms"
    assert render(took, "en") == "Passages: 1234, in 12,346 ms"
    blackout = datetime(2025, 4, 28, 12, 33, tzinfo=UTC)
    assert [day(blackout, language) for language in LANGUAGES] == [
        "28 abr 2025",
        "28 avr. 2025",
        "Apr 28, 2025",
    ]


def test_a_language_that_nobody_is_answered_in_is_refused() -> None:
    for language in LANGUAGES:
        check_language(language)
    with pytest.raises(InvalidParameterError, match="«de» no es una lengua"):
        check_language("de")


TOO_SMALL = "{value} is less than the minimum, {ge}"


def test_a_text_is_made_anew_in_another_language() -> None:
    text = _(TOO_SMALL).format(value="«0»", ge=1)
    assert text == "«0» es menor que el mínimo, 1"
    assert (text.msgid, text.values) == (TOO_SMALL, {"value": "«0»", "ge": 1})
    assert render(text, "es") == text
    assert render(text, "en") == "«0» is less than the minimum, 1"
    assert render(text, "fr-CA") == "«0» est inférieur au minimum, 1"
