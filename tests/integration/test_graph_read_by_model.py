"""A language model reads notes for the graph, and nobody waits for it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rag_resources.core.causal import Relation
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.errors import (
    DeadlineExceededError,
    InvalidAnswerError,
    ProviderUnavailableError,
)
from rag_resources.core.graph_version import GraphPart
from rag_resources.database.pool import Database
from rag_resources.graph.extraction import Extractor
from rag_resources.graph.reading import read_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from tests.corpus import ALWAYS, SOURCE, Draft, records
from tests.graph_corpus import GraphCorpus
from tests.language_models import AnswerT, ScriptedModel

LONG = ChunkingConfig(max_tokens=512, overlap_tokens=0, min_tokens=0)
BAR, SHOP = "el bar cerró: nadie pagaba a bernat", "fui al mercado con noemí"
NOTES = [Draft(BAR), Draft(SHOP)]
SAID = {
    "cause": "nadie pagaba a bernat",
    "effect": "el bar cerró",
    "relation": Relation.LEADS_TO.value,
}


class Reader(ScriptedModel):
    """Finds the same in every note; `before` is called first, with what it is asked."""

    def __init__(self, before: Callable[[str], None] = lambda _: None) -> None:
        super().__init__({"statements": [SAID]}, name="ollama:prueba")
        self._before = before

    def answer(self, prompt: str, shape: type[AnswerT], **asked: Any) -> AnswerT:
        """Answer, afterwards."""
        self._before(prompt)
        return super().answer(prompt, shape, **asked)


def read_by(database: Database, before: Callable[[str], None] = lambda _: None) -> GraphCorpus:
    """A corpus of two notes whose graph a language model reads."""
    corpus = GraphCorpus(database, Extractor(Reader(before)))
    corpus.fill(NOTES, LONG)
    return corpus


def test_what_it_finds_is_stored_with_its_name(database: Database) -> None:
    corpus = read_by(database)
    reports = corpus.read()
    assert [reports[part].notes for part in GraphPart] == [2, 2]
    assert corpus.statements() == {("nadie pagaba a bernat", "LEADS_TO", "el bar cerró")}
    found = corpus.fetch(
        "SELECT extractor FROM relationships UNION SELECT marker FROM relationships"
    )
    assert [row.extractor for row in found] == ["ollama:prueba"]
    assert corpus.waiting() == set()
    assert [corpus.read()[part].notes for part in GraphPart] == [0, 0]


def test_a_note_can_be_edited_or_deleted_while_the_model_reads_it(database: Database) -> None:
    """The edit is read again, and nobody waits for the model."""
    changes = [SHOP]

    def change(prompt: str) -> None:
        if BAR in prompt and changes:
            changes.clear()
            edited = [replace(NOTES[0], text="fui al cine con noemí"), NOTES[1]]
            ingest(corpus.database, records(edited, "ana"), tenant="ana", source=SOURCE)
            with corpus.database.transaction() as connection:
                connection.execute("SET LOCAL lock_timeout = '2s'")
                connection.execute("DELETE FROM notes WHERE content = %s", (SHOP,))
            corpus.index(LONG)

    corpus = read_by(database, change)
    corpus.read()
    assert changes == []
    assert corpus.events() == set()
    assert {part for _, part in corpus.waiting()} == {"mentions"}


@pytest.mark.parametrize("error", [InvalidAnswerError("x"), DeadlineExceededError("x")])
def test_a_note_that_it_cannot_read_is_recorded_and_the_others_go_on(
    database: Database, error: Exception
) -> None:
    def fail(prompt: str) -> None:
        if BAR in prompt:
            raise error

    corpus = read_by(database, fail)
    reports = corpus.read()
    assert [len(reports[part].failed) for part in GraphPart] == [0, 1]
    assert {part for __, part in corpus.waiting()} == {"causal_statements"}
    if isinstance(error, DeadlineExceededError):
        assert reports[GraphPart.STATEMENTS].failed[0].error == _(
            "the language model did not read the note in time"
        )


@pytest.mark.parametrize(
    "error", [ProviderUnavailableError("caído"), DeadlineExceededError("tarde")]
)
def test_a_model_that_does_not_answer_ends_the_run_and_keeps_the_queue(
    database: Database, error: Exception
) -> None:
    def fail(_: str) -> None:
        raise error

    corpus = read_by(database, fail)
    with pytest.raises(ProviderUnavailableError):
        read_notes(database, GraphPart.STATEMENTS, corpus.extractor, ALWAYS)
    assert len(corpus.waiting()) == 4
    assert corpus.fetch("SELECT FROM indexing_failures") == []
