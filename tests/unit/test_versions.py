"""The version of an algorithm: equal for equal data, different after any change."""

from dataclasses import replace
from typing import Any

import pytest

from rag_resources.answers.answerers import QUOTATION_VERSION, QuotationAnswerer
from rag_resources.core import chunking_version
from rag_resources.core.chunking_version import algorithm, chunking_hash
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.judging import RULES_VERSION
from rag_resources.core.text import Span
from rag_resources.languages.files import LANGUAGES, names
from rag_resources.prompts import prompt

"""If a test says that this has changed, all chunks and vectors of every user will be made again.

Is that what you want? Then write the new value here, and a line into CHANGELOG.md.
"""


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Any:
    yield
    monkeypatch.undo()
    algorithm.cache_clear()


def test_versions_are_the_ones_that_were_meant() -> None:
    """Whoever changes one means it: results of before are not comparable with later ones."""
    assert RULES_VERSION == "embedded-5"
    assert QUOTATION_VERSION == "quotation-3"


def test_another_segmenter_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a change of its code: it shows in what becomes of the probe."""
    before = algorithm()

    def one_sentence(text: str) -> list[Span]:
        return [Span(0, len(text))]

    monkeypatch.setattr("rag_resources.core.chunking.sentences", one_sentence)
    algorithm.cache_clear()
    assert algorithm() != before


def test_a_revision_of_the_code_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = chunking_hash(ChunkingConfig())
    monkeypatch.setattr(chunking_version, "REVISION", chunking_version.REVISION + 1)
    algorithm.cache_clear()
    assert chunking_hash(ChunkingConfig()) != before


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_prompts_about_a_question_are_in_every_language(language: str) -> None:
    assert names(language, "prompts") == (
        "answer.toml",
        "conversation.toml",
        "hypothetical.toml",
    )
    assert prompt("answer", language).version != prompt("answer").version


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_answers_in_another_language_are_told_apart(language: str) -> None:
    names_of = {QuotationAnswerer(each).name for each in ("es", language)}
    assert QUOTATION_VERSION in names_of
    assert len(names_of) == 2


def test_a_prompt_is_known_by_its_words() -> None:
    """The prompt versions stored with earlier results still name the same prompts."""
    assert prompt("answer").version == "answer-55beab77"
    assert prompt("judge").version == "judge-8b113096"
    assert replace(prompt("judge"), task="").version != "judge-8b113096"
    assert {prompt(name).name for name in ("hypothetical", "rerank")} == {
        "hypothetical",
        "rerank",
    }
