"""Questions are read before they are searched: what they name, and what turns carry over."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from rag_resources.application import Application, open_application
from rag_resources.application.asked import Asked
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.languages.messages import _
from rag_resources.providers.ollama import OllamaChat
from rag_resources.providers.openai import OpenAIChat
from rag_resources.settings import load_settings
from rag_resources.store.notes import note_id, upsert_notes
from tests.command_line import isolate
from tests.ollama_server import Fault, OllamaServer
from tests.openai_server import OpenAIServer

WORDS = {"configuration": "fulltext", "overrides": {"retrievers": {"semantic": {"weight": 0}}}}
NOTES = {
    "2024/plan_2024.md": ("Plan", "El tejado cuesta 900 euros. Lo pinta Andreu.", 2024, 3),
    "2025/plan_2025.md": ("Plan", "El tejado cuesta 1200 euros. Lo pinta Pilar.", 2025, 3),
    "acta.md": (
        "Acta de la junta",
        "Se decide cambiar el tejado en la junta. De 1998 sigue la grúa.",
        2025,
        6,
    ),
    "coche.md": ("Coche", "La zona de bajas emisiones empieza en la ronda.", 2025, 7),
}

TURNS = ["¿Cuánto cuesta el tejado en 2024?"]
TOGETHER = f"{TURNS[0]} ¿Y quién lo pinta?"


@pytest.fixture
def app(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database_url: str, database: Database
) -> Iterator[Application]:
    """An application over a few notes."""
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url)
    records = [
        NoteRecord(name, title, content, datetime(year, month, 5, tzinfo=UTC))
        for name, (title, content, year, month) in NOTES.items()
    ]
    with database.transaction() as connection:
        upsert_notes(connection, records, tenant="default", source="notes")
    with open_application(load_settings()) as opened:
        yield opened


def of(*names: str) -> set[UUID]:
    return {note_id("default", "notes", name) for name in names}


def cited(asked: Asked) -> set[UUID]:
    return {own.note_id for sentence in asked.answer.sentences for own in sentence.citations}


def found(asked: Asked) -> set[UUID]:
    return {own.note_id for own in asked.retrieval.response.results}


@pytest.mark.parametrize(
    ("question", "value", "notes"),
    [
        ("¿Cuánto cuesta el tejado en 2024?", "2024-01-01 – 2024-12-31", ["2024/plan_2024.md"]),
        (
            "¿Cuánto cuesta el tejado en marzo de 2025?",
            "2025-03-01 – 2025-03-31",
            ["2025/plan_2025.md"],
        ),
        ("¿Cuánto cuesta el tejado en plan_2024.md?", "plan_2024.md", ["2024/plan_2024.md"]),
        ("¿Cuánto cuesta el tejado en el plan 2025?", "plan_2025.md", ["2025/plan_2025.md"]),
    ],
)
def test_what_a_question_names_filters_is_told_and_can_be_revoked(
    app: Application, question: str, value: str, notes: list[str]
) -> None:
    asked = app.answers.ask(question, **WORDS)
    assert found(asked) == of(*notes)
    assert asked.reading
    (implied,) = asked.reading.implied
    assert implied.shown == value
    shown = app.answer_log.show(asked.answer_id).answer
    assert shown.filters["implied"][0]["value"] == value
    assert len(found(app.answers.ask(question, ignored=[implied.text.upper()], **WORDS))) > 1


def test_two_named_files_are_both_searched_and_both_cited(app: Application) -> None:
    asked = app.answers.ask("¿Cuánto cuesta el tejado en plan_2024.md y plan_2025.md?", **WORDS)
    plans = of("2024/plan_2024.md", "2025/plan_2025.md")
    assert cited(asked) == found(asked) == plans
    scores = [own.score for own in asked.retrieval.response.results]
    assert scores == sorted(scores, reverse=True)


def test_what_a_question_names_replaces_what_the_one_before_named(app: Application) -> None:
    asked = app.answers.ask("¿Y en 2025?", conversation=TURNS, **WORDS)
    assert asked.reading
    assert [own.text for own in asked.reading.implied] == ["en 2025"]
    alone = app.answers.ask("¿Quién pinta el tejado?", conversation=TURNS, **WORDS)
    assert alone.reading
    assert alone.reading.searched == "¿Quién pinta el tejado?"
    assert alone.reading.implied == ()


def test_the_callers_conditions_stand_and_what_meets_nothing_is_dropped_and_told(
    app: Application,
) -> None:
    allowed = RetrievalFilters(note_ids=tuple(of("acta.md")))
    for question in ("¿Qué cuesta el tejado en plan_2024.md?", "¿Qué cuesta el tejado en 2024?"):
        assert found(app.answers.ask(question, filters=allowed, **WORDS)) <= of("acta.md")
    asked = app.answers.ask("¿Cuánto cuesta el tejado en 1999?", **WORDS)
    assert len(found(asked)) == 3
    assert asked.reading
    assert asked.reading.implied == ()
    assert asked.reading.notes == (
        _("Nothing meets {conditions}; everything was searched.").format(conditions="«en 1999»"),
    )
    missing = app.answers.ask("¿Cuánto cuesta el tejado en informe.pdf?", **WORDS)
    assert missing.answer.found
    assert missing.reading
    assert missing.reading.notes == (
        _("There is no file “{name}”; everything was searched.").format(name="informe.pdf"),
    )


def test_a_day_begins_in_the_readers_time_zone(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMEZONE", "America/Bogota")
    with open_application(load_settings()) as elsewhere:
        asked = elsewhere.answers.ask("¿Cuánto cuesta el tejado en marzo de 2025?", **WORDS)
    (implied,) = asked.reading.implied
    assert implied.filters.created_from == datetime(2025, 3, 1, 5, tzinfo=UTC)


def test_of_another_time_only_what_names_the_period_answers(app: Application) -> None:
    """Whether no note is of the period, or none of those answers: the nearest are shown."""
    for question in ("¿Cuánto cuesta el tejado en 1999?", "¿Cuánto mide Pilar en junio de 2025?"):
        asked = app.answers.ask(question, **WORDS)
        assert not asked.answer.found
        assert asked.retrieval.response.results
        for own in asked.retrieval.response.results:
            assert own.content[:40] in asked.answer.notice
    asked = app.answers.ask("¿Qué sigue de 1998?", **WORDS)
    assert [own.text for own in asked.answer.sentences] == ["De 1998 sigue la grúa."]


def test_turns_carry_over_and_what_was_searched_is_stored(app: Application) -> None:
    asked = app.answers.ask("¿Y quién lo pinta?", conversation=TURNS, **WORDS)
    assert found(asked) == of("2024/plan_2024.md")
    stored = app.answer_log.show(asked.answer_id).answer
    assert (stored.question, stored.searched) == (
        "¿Y quién lo pinta?",
        TOGETHER,
    )
    assert [own.text for own in asked.answer.sentences] == ["Lo pinta Andreu."]


@pytest.fixture(params=[OllamaServer, OpenAIServer])
def model_server(request: pytest.FixtureRequest) -> Iterator[OllamaServer | OpenAIServer]:
    """A model server of each protocol."""
    with request.param() as running:
        yield running


@pytest.fixture
def app_with_model(
    app: Application, database_url: str, tmp_path: Path, model_server: OllamaServer | OpenAIServer
) -> Iterator[Application]:
    """An application whose language model rewrites and answers."""
    is_openai = isinstance(model_server, OpenAIServer)
    settings = load_settings(
        rag_home=tmp_path,
        database_url=database_url,
        llm_model="openai:llama3.2" if is_openai else "ollama:llama3.2",
        ollama_host=model_server.host,
        openai_base_url=f"{model_server.host}/v1",
    )
    with open_application(settings) as opened:
        yield opened
        model = opened.answers.language_model
    assert isinstance(model, OllamaChat | OpenAIChat)
    model.close()  # Shared by its server, which nobody else has.


def rewritten(server: OllamaServer, question: str) -> None:
    """Have a model rewrite questions, and find no answer."""
    server.answers = lambda schema, _: (
        {"question": question} if "question" in schema["properties"] else {"sentences": []}
    )


def prompts(server: OllamaServer) -> list[str]:
    """What a model was asked, without the questions and passages to answer."""
    asked = [request.body["messages"][-1]["content"] for request in server.requests]
    return [prompt for prompt in asked if "<conversacion>" in prompt]


def test_a_language_model_makes_a_question_of_a_conversation_stand_alone(
    app_with_model: Application, model_server: OllamaServer
) -> None:
    rewritten(model_server, "¿Quién  pinta el\ntejado en 2024?")
    asked = app_with_model.answers.ask("¿Y quién lo pinta?", conversation=TURNS, **WORDS)
    assert asked.reading
    assert asked.reading.searched == "¿Quién pinta el tejado en 2024?"
    assert found(asked) == of("2024/plan_2024.md")
    stored = app_with_model.answer_log.show(asked.answer_id).answer
    assert (stored.question, stored.searched) == ("¿Y quién lo pinta?", asked.reading.searched)
    (prompt,) = prompts(model_server)
    assert TURNS[0] in prompt.partition("</conversacion>")[0]
    assert "¿Y quién lo pinta?" in prompt.partition("<pregunta>")[2]


@pytest.mark.parametrize(
    "written",
    [
        "¿Quién pinta el tejado de Marta?",  # Nobody named her.
        "¿Quién pinta el tejado en 2025?",
        "¿Quién pinta el tejado y las 3 puertas en 2024?",
        "¿y quién?",
        " ",
        "x" * 5_000,
    ],
)
def test_what_a_model_makes_up_or_leaves_empty_is_not_searched(
    app_with_model: Application, model_server: OllamaServer, written: str
) -> None:
    rewritten(model_server, written)
    asked = app_with_model.answers.ask("¿Y quién lo pinta?", conversation=TURNS, **WORDS)
    assert asked.reading
    assert asked.reading.searched == TOGETHER
    assert len(prompts(model_server)) == 1


@pytest.mark.parametrize("fault", [Fault.STATUS, Fault.GARBAGE, Fault.CONTENT, Fault.CUT])
def test_without_a_model_that_answers_the_rules_carry_over(
    app_with_model: Application, model_server: OllamaServer, fault: Fault
) -> None:
    model_server.inject(fault, status=500)
    asked = app_with_model.answers.ask("¿Y quién lo pinta?", conversation=TURNS, **WORDS)
    assert asked.reading
    assert asked.reading.searched == TOGETHER
    assert "Lo pinta Andreu." in [own.text for own in asked.answer.sentences]


def test_a_question_that_stands_alone_is_not_rewritten(
    app_with_model: Application, model_server: OllamaServer
) -> None:
    rewritten(model_server, "¿Otra cosa?")
    question = "¿Qué se decide en la junta?"
    for turns in (TURNS, []):
        asked = app_with_model.answers.ask(question, conversation=turns, **WORDS)
        assert asked.reading
        assert asked.reading.searched == question
    assert prompts(model_server) == []


def test_a_value_of_a_documents_metadata_is_a_name(app: Application, database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO documents (source, metadata) VALUES ('d', '{\"autora\": \"Pilar Gómez\"}')"
        )
        connection.execute(
            'UPDATE notes SET metadata = \'{"autora": "Pilar Gómez"}\''
            " WHERE external_id = '2025/plan_2025.md'"
        )
    asked = app.answers.ask("¿Cuánto cuesta el tejado según Pilar Gomez?", **WORDS)
    assert found(asked) == of("2025/plan_2025.md")
    assert asked.reading
    assert asked.reading.implied[0].shown == "autora = Pilar Gómez"
