"""The log of answers: what it keeps and forgets, what readers say, and that none waits for it."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
from structlog.testing import capture_logs

from rag_resources.application import Application, open_application
from rag_resources.application.asked import Asked
from rag_resources.core.answer_log import Outcome, Verdict
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.ingestion.deletion import delete_notes
from rag_resources.languages.messages import _, about
from rag_resources.settings import load_settings
from rag_resources.store.notes import note_id, upsert_notes
from tests.command_line import isolate

DAY = datetime(2025, 1, 12, tzinfo=UTC)
CONTENT = "Llovió todo el día. El taller pide 415 euros por la dirección. Cenamos sopa caliente."
COST = "El taller pide 415 euros por la dirección."
QUESTION = "¿Cuánto pide el taller?"
WORDS = {"configuration": "fulltext", "overrides": {"retrievers": {"semantic": {"weight": 0}}}}


@pytest.fixture
def note(database: Database) -> UUID:
    """A stored note."""
    with database.transaction() as connection:
        record = NoteRecord("taller", "El taller", CONTENT, DAY)
        upsert_notes(connection, [record], tenant="default", source="notes")
    return note_id("default", "notes", "taller")


@pytest.fixture
def opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str
) -> Iterator[Callable[..., Application]]:
    """Open an application with settings."""
    applications = []

    def build(**settings: str) -> Application:
        isolate(monkeypatch, tmp_path, DATABASE_URL=database_url, **settings)
        applications.append(open_application(load_settings()))
        return applications[-1].__enter__()

    yield build
    for application in applications:
        application.__exit__(None, None, None)


def ask(app: Application, question: str = QUESTION) -> Asked:
    return app.answers.ask(question, **WORDS)


def everything(database: Database) -> str:
    """Both tables as text."""
    with database.transaction() as connection:
        rows = [
            *connection.execute("SELECT a::text FROM answers AS a").fetchall(),
            *connection.execute("SELECT f::text FROM feedback AS f").fetchall(),
        ]
    return "\n".join(row[0] for row in rows)


def test_an_answer_is_stored_with_its_ranges_and_shown_again(
    opened: Callable[..., Application], database: Database, note: UUID
) -> None:
    app = opened()
    asked = ask(app)
    shown = app.answer_log.show(asked.answer_id)
    answer = shown.answer
    assert (answer.question, answer.outcome, answer.intent) == (
        QUESTION,
        Outcome.ANSWERED,
        "factual",
    )
    assert (answer.configuration, answer.sentences) == ("fulltext", None)
    assert answer.config_hash
    assert {"whole", "answer", "search"} <= answer.stages.keys()
    assert answer.silence == {
        "silent": False,
        "missing": {
            "message": "“rag calibrate” is missing, which takes 20 questions that succeed and 20 "
            "that fail",
            "values": {},
        },
    }
    (citation,) = shown.citations
    assert (citation.text, citation.title, citation.state) == (COST, "El taller", "as_cited")
    assert COST not in everything(database)
    with database.transaction() as connection:
        connection.execute("UPDATE notes SET content = content || ' Y postre.'")
    (edited,) = app.answer_log.show(str(asked.answer_id)[:8]).citations
    assert (edited.state, edited.text) == ("edited", None)


def test_property_51_no_stored_answer_keeps_the_text_of_a_deleted_note(
    opened: Callable[..., Application], database: Database, note: UUID
) -> None:
    """Also if it is written only after the deletion, as the log does not wait."""
    app = opened(ANSWER_LOG_TEXT="all")
    before, after = ask(app), ask(app)
    app.answer_log.give_feedback(before.answer_id, "down", comment="Pone 415 y son 514.")
    with database.transaction() as connection:
        (late,) = connection.execute("SELECT * FROM answers WHERE id = %s", (after.answer_id,))
        connection.execute("DELETE FROM answers WHERE id = %s", (after.answer_id,))
    assert COST in late.sentences
    delete_notes(database, [note], reason="")
    app.answer_log.record(after, "es")
    shown = [app.answer_log.show(own.answer_id) for own in (before, after)]
    stored = everything(database)
    assert (COST in stored, "Pone 415" in stored) == (False, False)
    assert [own.answer.question for own in shown] == [QUESTION, QUESTION]
    assert [own.citations[0].state for own in shown] == ["gone", "gone"]
    assert [given.verdict for given in shown[0].feedback] == [Verdict.DOWN]


def test_a_verdict_is_on_the_whole_or_on_a_citation_and_the_last_one_counts(
    opened: Callable[..., Application], note: UUID
) -> None:
    app = opened()
    asked, silent = ask(app), ask(app, "¿xilófono?")
    log = app.answer_log
    log.give_feedback(asked.answer_id, "down")
    log.give_feedback(asked.answer_id, "up", comment=" Sí.\0 ")
    given = log.give_feedback(str(asked.answer_id)[:8], "down", citation=1)
    assert given.to_json()["citation"] == 1
    stored = log.show(asked.answer_id).feedback
    assert [(own.citation, own.verdict.value, own.comment) for own in stored] == [
        (None, "up", "Sí.\ufffd"),
        (1, "down", None),
    ]
    for arguments, message in (
        (
            {"answer_id": uuid4(), "verdict": "up"},
            _(
                "There is no answer “{prefix}”: there never was, or it is no longer kept. “rag "
                "answers list” shows the latest ones."
            ),
        ),
        (
            {"answer_id": "no", "verdict": "up"},
            _(
                "There is no answer “{prefix}”: there never was, or it is no longer kept. “rag "
                "answers list” shows the latest ones."
            ),
        ),
        (
            {"answer_id": asked.answer_id, "verdict": "bien"},
            _("“{value}” is not a verdict: write up (useful) or down (not useful)."),
        ),
        (
            {"answer_id": asked.answer_id, "verdict": "up", "citation": 2},
            _("The answer has no citation {value}: it has {count}."),
        ),
        (
            {"answer_id": asked.answer_id, "verdict": "up", "citation": 0},
            _("The answer has no citation {value}: it has {count}."),
        ),
        (
            {"answer_id": silent.answer_id, "verdict": "up", "citation": 1},
            _("The answer has no citations; judge it as a whole, without a citation's number."),
        ),
        (
            {"answer_id": asked.answer_id, "verdict": "up", "comment": "a" * 2_001},
            about("comment", _("has more than {max_length} characters or values")),
        ),
    ):
        with pytest.raises(InvalidParameterError) as error:
            log.give_feedback(**arguments)  # type: ignore[arg-type]
        assert error.value.msgid == message.msgid


def test_an_answer_neither_waits_for_the_log_nor_fails_by_it(
    opened: Callable[..., Application], database_url: str, note: UUID
) -> None:
    app = opened()
    ask(app)
    app.answer_writer.flush()
    with psycopg.connect(database_url) as holder:
        holder.execute("LOCK TABLE answers IN ACCESS EXCLUSIVE MODE")
        with capture_logs() as logs:
            started = time.monotonic()
            assert ask(app).answer.found
            assert time.monotonic() - started < 1
            app.answer_writer.flush()
    assert [own["event"] for own in logs if own["log_level"] == "warning"] == ["answer_log_skipped"]
    assert len(app.answer_log.latest(limit=9)) == 1


@pytest.mark.parametrize(("kept", "is_named", "is_quoted"), [("none", 0, 0), ("all", 1, 1)])
def test_the_setting_says_which_texts_are_kept(
    opened: Callable[..., Application],
    database: Database,
    note: UUID,
    kept: str,
    is_named: bool,
    is_quoted: bool,
) -> None:
    app = opened(ANSWER_LOG_TEXT=kept)
    asked = ask(app)
    app.answer_log.show(asked.answer_id)
    stored = everything(database)
    assert (QUESTION in stored, COST in stored) == (is_named, is_quoted)
