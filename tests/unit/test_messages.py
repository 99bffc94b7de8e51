"""The catalogue of messages: its codes, their wording in each language, and texts made of them."""

import copy
import os
import pickle
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter

import pytest

from rag_resources.core import messages
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import (
    InvalidConfigurationError,
    InvalidParameterError,
    InvalidQueryError,
)
from rag_resources.core.messages import Message
from rag_resources.core.places import Place
from rag_resources.core.texts import MessageFormatter, Text, joined
from rag_resources.core.validation import validated
from rag_resources.languages.files import LANGUAGES, names, read
from rag_resources.languages.formats import ReaderFormatter, day
from rag_resources.languages.messages import OPERATORS, check_language, render, wording
from rag_resources.retrieval.notices import parts_in_words

ROOT = Path(__file__).parents[2]


def placeholders(template: str) -> set[str | None]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def test_every_message_is_used() -> None:
    """By its name, in some module or template."""
    files = (
        path
        for package in ("rag_resources", "rag_assets")
        for suffix in ("py", "html", "js")
        for path in (ROOT / package).rglob(f"*.{suffix}")
        if path != ROOT / "rag_resources/core/messages.py"
    )
    words = {word for path in files for word in re.findall(r"\w+", path.read_text("utf-8"))}
    names = [name for name in vars(Message) if name.isupper()]
    assert names
    assert [name for name in names if name not in words] == []


def test_every_code_has_its_wording_in_spanish() -> None:
    """Or the package cannot be imported; the error names the codes."""
    with pytest.raises(ValueError, match="QUERY_BLANK"):
        messages.bind({code: text for code, text in wording("es").items() if code != "QUERY_BLANK"})
    with pytest.raises(ValueError, match="NO_SUCH_CODE"):
        messages.bind({**wording("es"), "NO_SUCH_CODE": ""})
    assert set(wording("es")) == set(Message.__annotations__)
    assert wording("es")["QUERY_BLANK"] == Message.QUERY_BLANK


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_what_readers_of_answers_see_is_in_every_language(language: str) -> None:
    """The file `answers.toml` has the same codes everywhere, in the same order."""
    assert list(read(language, "messages/answers.toml")) == list(
        read("es", "messages/answers.toml")
    )


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_what_the_page_says_is_in_every_language(language: str) -> None:
    assert list(read(language, "messages/page.toml")) == list(read("es", "messages/page.toml"))


def test_what_the_scripts_of_the_page_say_is_in_the_catalogue() -> None:
    scripts = (ROOT / "rag_resources/api/page").glob("*.js")
    codes = {
        code for path in scripts for code in re.findall(r'"([A-Z]+_[A-Z_]+)"', path.read_text())
    }
    assert len(codes) > 30
    assert codes - set(wording("es")) == set()


@pytest.mark.parametrize("language", OPERATORS)
def test_operators_read_every_message_in_their_language(language: str) -> None:
    assert wording(language).keys() == wording("es").keys()


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


READ_WITH_ANSWERS = [
    "rag_assets/serving/retrieve.py",
    "rag_resources/application/confidence.py",
    "rag_resources/application/wiring.py",
    "rag_resources/cli/answer.py",
    "rag_resources/cli/retrieve.py",
    "rag_resources/cli/running.py",
    "rag_resources/core/answers.py",
    "rag_resources/core/configuration.py",
    "rag_resources/core/filters.py",
    "rag_resources/core/fusion_config.py",
    "rag_resources/core/retrievers.py",
    "rag_resources/core/validation.py",
    "rag_resources/languages/messages.py",
    "rag_resources/retrieval/**/*.py",
    "rag_resources/store/models.py",
]
"""Modules whose messages reach readers of answers."""
FOR_OPERATORS = {
    "OVERLAP_TOO_LARGE",
    "MINIMUM_TOO_LARGE",
    "STRUCTURE_SIZES",
    "WINDOW_STRIDE_TOO_LARGE",  # settings of indexing
    "EMBEDDING_DIMENSION",  # only in the log
    "MODEL_CHANGED",  # only in indexing
}
OF_A_FORM = ("HELP_", "FIELD_", "JOB_", "EXAMPLE_")
"""The help pages and the launchpad are in Spanish."""


def test_what_readers_of_answers_see_is_in_the_file_of_every_language() -> None:
    named = {
        code
        for pattern in READ_WITH_ANSWERS
        for path in ROOT.glob(pattern)
        for code in re.findall(r"Message\.([A-Z][A-Z_0-9]+)", path.read_text("utf-8"))
        if not code.startswith(OF_A_FORM)
    }
    assert len(named) > 60
    missing = named - FOR_OPERATORS - read("es", "messages/answers.toml").keys()
    assert missing == set()


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_placeholders_are_the_same_in_every_language(language: str) -> None:
    spanish = wording("es")
    differ = {
        code: placeholders(template) ^ placeholders(spanish[code])
        for code, template in wording(language).items()
        if placeholders(template) != placeholders(spanish[code])
    }
    assert differ == {}


@pytest.mark.parametrize(
    ("count", "told"), [(0, "Hay 0 notas."), (1, "Hay 1 nota."), (2, "Hay 2 notas.")]
)
def test_a_template_chooses_between_singular_and_plural(count: int, told: str) -> None:
    template = "Hay {count:# nota|# notas}."
    assert MessageFormatter().format(template, count=count) == told
    assert ReaderFormatter("es").format(template, count=count) == told


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_choice_has_two_parts(language: str) -> None:
    specs = [
        spec
        for template in wording(language).values()
        for _, _, spec, _ in Formatter().parse(template)
        if spec and "|" in spec
    ]
    assert all(spec.count("|") == 1 for spec in specs)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_file_has_one_message_a_line(language: str) -> None:
    """So a change of a message is a change of its line, and the code is found by searching."""
    for name in names(language, "messages"):
        path = ROOT / "rag_resources/languages" / language / "messages" / name
        lines = [
            line
            for line in path.read_text("utf-8").splitlines()
            if line.strip() and not line.startswith("#")
        ]
        assert [line.partition(" = ")[0] for line in lines] == list(
            read(language, f"messages/{name}")
        )


def test_the_choices_of_a_field_are_listed_in_the_language() -> None:
    with pytest.raises(InvalidConfigurationError) as caught:
        validated(RetrievalConfig, {"unit": "azar"}, "x")
    for language, said in {
        "es": "La configuración no es válida (x):\n  - unit: «azar» no es una de las "
        "opciones: 'chunks' o 'notes'",
        "fr": "La configuration n'est pas valide (x) :\n  - unit: « azar » ne fait pas partie "
        "des options : 'chunks' ou 'notes'",
        "en": "The configuration is not valid (x):\n  - unit: “azar” is not one of the "
        "options: 'chunks' or 'notes'",
    }.items():
        assert render(caught.value.message, language) == said


def test_the_place_of_a_passage_is_told_in_the_language() -> None:
    told = parts_in_words((Place(3), Place(1, sheet="Gastos", cells=("B2",))))
    assert told == "pág. 3, hoja «Gastos», B2"
    assert render(told, "fr") == "p. 3, feuille « Gastos », B2"
    assert render(told, "en") == "p. 3, sheet “Gastos”, B2"


def test_numbers_and_dates_are_written_as_in_the_language() -> None:
    """A number whose template gives its decimals; what a reader types back stays as it is."""
    scores = Message.RETRIEVED_RERANKED.format(before=0.5, score=0.25)
    assert render(scores, "es") == "fusión 0,500, reordenación 0,250"
    assert render(scores, "fr") == "fusion 0,500, reclassement 0,250"
    assert render(scores, "en") == "fusion 0.500, re-ranking 0.250"
    took = Message.PASSAGES_FOUND.format(count=1234, latency_ms=12345.6)
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


def test_a_text_is_made_anew_in_another_language() -> None:
    text = Message.PROBLEM_TOO_SMALL.format(value="«0»", ge=1)
    assert text == "«0» es menor que el mínimo, 1"
    assert (text.code, text.values) == ("PROBLEM_TOO_SMALL", {"value": "«0»", "ge": 1})
    assert render(text, "es") == text
    assert render(text, "en") == "«0» is less than the minimum, 1"
    assert render(text, "fr-CA") == "«0» est inférieur au minimum, 1"


def test_texts_inside_a_text_are_made_anew_too() -> None:
    inner = Message.PROBLEM_TOO_MANY.format(max_length=3)
    outer = joined(": ", ["tags", inner]) + " (" + Message.PROBLEM_EMPTY + ")"
    assert outer == "tags: tiene más de 3 valores (no puede estar vacío)"
    assert render(outer, "en") == "tags: has more than 3 values (must not be empty)"


def test_what_a_language_lacks_stays_in_spanish() -> None:
    operators = Message.GATE_PASS
    assert render(operators, "fr") == operators == "pasa"
    assert render(Message.QUERY_BLANK, "tlh") == Message.QUERY_BLANK
    assert render("the server's own words", "fr") == "the server's own words"


def test_a_text_keeps_its_code_when_copied() -> None:
    """Errors cross processes, and Dagster copies metadata."""
    text = Message.PROBLEM_TOO_SMALL.format(value=0, ge=1)
    for again in (pickle.loads(pickle.dumps(text)), copy.copy(text), copy.deepcopy(text)):
        assert isinstance(again, Text)
        assert (again, again.code, again.values) == (text, text.code, text.values)


def test_an_error_carries_code_and_values() -> None:
    error = InvalidQueryError(Message.QUERY_TOO_LONG.format(length=3_000, maximum=2_000))
    assert (error.code, error.values) == ("QUERY_TOO_LONG", {"length": 3_000, "maximum": 2_000})
    assert render(error.message, "en") == "The question has 3000 characters; the maximum is 2000."


def test_an_error_with_problems_has_the_headlines_code() -> None:
    problem = joined(": ", ["top_k", Message.PROBLEM_EMPTY])
    error = InvalidConfigurationError(Message.INVALID_FILTERS, [problem])
    assert error.code == "INVALID_FILTERS"
    assert error.values == {"problems": (problem,)}
    assert render(error.message, "en") == "The filters are not valid:\n  - top_k: must not be empty"
    assert InvalidQueryError("the server's own words").code is None
