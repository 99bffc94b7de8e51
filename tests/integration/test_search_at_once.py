"""One statement a question: what it finds is what planning, searching and fetching find."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from rag_resources.core.configuration import RetrievalConfig, with_overrides
from rag_resources.core.fusion_config import FusionConfig, RetrieverConfig
from rag_resources.core.retrievers import RetrieverName
from rag_resources.core.types import RetrievalResponse, RetrievalResult
from rag_resources.database.connection import LimitedCursor, LimitedRawCursor
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.windows import embed_windows
from rag_resources.retrieval import searching
from rag_resources.retrieval.cache import build_caches
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.models import retire_model
from rag_resources.store.passages import fetch_passages
from rag_resources.store.search_at_once import AllAtOnce, search_at_once
from tests.corpus import ALWAYS, GENEROUS_MS, Draft
from tests.integration.test_windows import CAT, LONG, NOTES, PAIRS, Windowed

WINDOWS = {
    RetrieverName.SEMANTIC: RetrieverConfig(weight=0.25),
    RetrieverName.WINDOWS: RetrieverConfig(weight=0.25),
    RetrieverName.FULLTEXT: RetrieverConfig(weight=0.5),
}
QUESTIONS = [
    "¿Dónde duerme la gata?",
    "¿Qué recomienda el médico? ¿Cuánto costará el ascensor?",
    "novecientos",
    "¿Quién vino?",
]
CONFIGS = {
    "weighted": RetrievalConfig(model="openai_hash"),
    "rrf": RetrievalConfig(model="openai_hash", fusion=FusionConfig(method="rrf")),
    "scaled": RetrievalConfig(
        model="openai_hash", fusion=FusionConfig(method="scaled"), retrievers=WINDOWS
    ),
    "scaled, found by windows and words": RetrievalConfig(
        model="openai_hash",
        retrievers={
            **WINDOWS,
            RetrieverName.SEMANTIC: RetrieverConfig(weight=0.25, candidates=False),
        },
    ),
    "weighted with windows": RetrievalConfig(model="openai_hash", retrievers=WINDOWS),
    "reranked": RetrievalConfig(model="openai_hash", strategy="hybrid+rerank"),
    "words": RetrievalConfig(model="openai_hash", strategy="fulltext"),
    "whole notes": RetrievalConfig(model="openai_hash", unit="notes"),
}
FRESH = Draft("La gata también duerme en el sofá.", "La gata", state="new")
OTHERS = (Draft("La gata de Blas.", tenant="blas"), FRESH)


@pytest.fixture
def tenant() -> str:
    return "ana"


def filled(database: Database, *further: Draft) -> Windowed:
    """The notes with their windows, and others beside them."""
    corpus = Windowed(database)
    corpus.fill([*NOTES, *further], LONG)
    embed_windows(corpus.database, corpus.embedder, PAIRS, ALWAYS)
    return corpus


@pytest.fixture
def corpus(database: Database) -> Windowed:
    return filled(database, *OTHERS)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Collect the statements that are executed through the pool."""
    sent: list[object] = []
    with monkeypatch.context() as patched:
        for kind in (LimitedCursor, LimitedRawCursor):
            patched.setattr(kind, "execute", recording(kind.execute, sent))
        yield sent


def recording(execute: Callable[..., Any], sent: list[object]) -> Callable[..., Any]:
    """The same method, which also keeps each statement."""

    def recorded(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        sent.append(query)
        return execute(cursor, query, *args, **options)

    return recorded


def ask(pipeline: RetrievalPipeline, question: str, config: RetrievalConfig) -> RetrievalResponse:
    response = pipeline.retrieve(question, config, top_k=4, deadline_ms=GENEROUS_MS)
    assert (response.degraded, response.error) == ((), None)
    return response


def shown(results: tuple[RetrievalResult, ...]) -> list[dict[str, Any]]:
    """What a user sees, the last bits of the scores aside."""
    rows = [result.to_json() for result in results]
    for row in rows:
        row["score"] = pytest.approx(row["score"], abs=1e-9)
        original = row["metadata"]["originalScore"]
        row["metadata"]["originalScore"] = pytest.approx(original, abs=1e-9)
    return rows


@pytest.mark.parametrize("further", [OTHERS, ()])
@pytest.mark.parametrize("name", CONFIGS)
def test_one_statement_finds_what_three_find(
    database: Database, monkeypatch: pytest.MonkeyPatch, name: str, further: tuple[Draft, ...]
) -> None:
    """In the same order, with the same texts, windows and methods; a first question plans."""
    corpus = filled(database, *further)
    kept = corpus.pipeline()
    ask(kept, "¿Qué?", CONFIGS[name])
    for question in QUESTIONS:
        stepwise = ask(corpus.pipeline(), question, CONFIGS[name])
        with counted(monkeypatch) as sent:
            at_once = ask(kept, question, CONFIGS[name])

        assert "plan" in stepwise.stages
        assert "plan" not in at_once.stages
        assert shown(at_once.results) == [result.to_json() for result in stepwise.results]
        assert at_once.results or question == QUESTIONS[-1]
        assert len(sent) <= 2, "a second one only reads texts that were not expected to lead"


@pytest.mark.parametrize(
    ("question", "changes", "kept"),
    [
        (QUESTIONS[0], {}, 2),
        (QUESTIONS[1], {}, None),
        (QUESTIONS[0], {"fusion": {"method": "rrf"}}, None),
    ],
)
def test_twice_as_many_candidates_come_along_as_are_needed(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    question: str,
    changes: dict[str, object],
    kept: int | None,
) -> None:
    """All of them where others than the first of the statement may lead."""
    pipeline = filled(database).pipeline()
    config = with_overrides(CONFIGS["scaled"], changes)
    brought: list[AllAtOnce] = []

    def bringing(*arguments: Any, **options: Any) -> AllAtOnce:
        brought.append(search_at_once(*arguments, **options))
        return brought[-1]

    monkeypatch.setattr(searching, "search_at_once", bringing)
    first, again = (
        pipeline.retrieve(question, config, top_k=1, deadline_ms=GENEROUS_MS) for _ in range(2)
    )
    (made,) = brought
    found = {own.chunk_id for ranking in made.rankings for own in ranking.candidates}
    assert len(found) == (kept or len(NOTES))
    assert again.results[0].to_json() == {
        **first.results[0].to_json(),
        "score": pytest.approx(first.results[0].score, abs=1e-9),
        "metadata": again.results[0].to_json()["metadata"],
    }


def test_a_note_chunked_again_between_two_statements_is_found(
    corpus: Windowed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chunk that was found is gone by then; the snapshot that is searched next has another."""
    pipeline = corpus.pipeline()
    ask(pipeline, "¿Qué?", CONFIGS["words"])
    ((gata,),) = corpus.fetch("SELECT id FROM notes WHERE content = %s", CAT)

    def chunk_then_fetch(*arguments: Any) -> Any:
        monkeypatch.undo()
        corpus.fetch(
            "UPDATE notes SET content = content || ' Sí.' WHERE id = %s RETURNING id", gata
        )
        chunk_window(corpus.database, ALWAYS, LONG)
        return fetch_passages(*arguments)

    monkeypatch.setattr(searching, "search_at_once", bringing_no_texts)
    monkeypatch.setattr(searching, "fetch_passages", chunk_then_fetch)
    response = ask(pipeline, QUESTIONS[0], CONFIGS["words"])

    assert gata in {result.note_id for result in response.results}


def bringing_no_texts(*arguments: Any, **options: Any) -> AllAtOnce:
    """The one statement, had it expected other chunks to lead."""
    return replace(search_at_once(*arguments, **options), passages={})


def test_a_known_question_takes_one_statement(
    corpus: Windowed, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = corpus.pipeline()
    ask(pipeline, QUESTIONS[0], CONFIGS["scaled"])
    with counted(monkeypatch) as sent:
        ask(pipeline, QUESTIONS[0], CONFIGS["scaled"])
    assert len(sent) == 1


def test_only_a_question_that_has_an_answer_waits_for_the_version(
    corpus: Windowed, monkeypatch: pytest.MonkeyPatch
) -> None:
    caches = build_caches(None)
    pipeline, config = corpus.pipeline(caches=caches), CONFIGS["scaled"]
    ask(pipeline, QUESTIONS[1], config)

    def asked() -> tuple[bool, int]:
        with counted(monkeypatch) as sent:
            response = ask(pipeline, QUESTIONS[0], config)
        return response.cached, len(sent)

    assert [asked(), asked()] == [(False, 1), (True, 1)]
    with corpus.database.transaction() as connection:
        connection.execute("UPDATE notes SET title = title || '!' WHERE tenant_id = 'blas'")
    assert asked() == (True, 1)
    with corpus.database.transaction() as connection:
        connection.execute("UPDATE notes SET title = title || '!' WHERE tenant_id = 'ana'")
    # The version of the answer that is there is not this one; then the question is searched.
    assert [asked(), asked()] == [(False, 2), (True, 1)]
    assert caches.answers.statistics.hits == 3
    assert caches.answers.statistics.misses == 3


@pytest.mark.parametrize("fraction", ["", ".5", ".123456"])
def test_the_statement_tells_the_version_that_is_read_by_itself(
    corpus: Windowed, fraction: str
) -> None:
    """The moment of the next expiry, too, which comes as text."""
    with corpus.database.transaction() as connection:
        connection.execute(
            "UPDATE notes SET expires_at = %s::timestamptz WHERE tenant_id = 'ana'",
            [f"2100-01-01 10:00:00{fraction}+02"],
        )
    pipeline, config = corpus.pipeline(caches=build_caches(None)), CONFIGS["scaled"]
    ask(pipeline, QUESTIONS[1], config)
    assert [ask(pipeline, QUESTIONS[0], config).cached for _ in range(2)] == [False, True]


@pytest.mark.parametrize("others", [[], [Draft("La gata de Blas.", tenant="blas")]])
def test_with_several_tenants_no_plan_is_kept(corpus: Windowed, others: list[Draft]) -> None:
    """A plan for a tenant of usual size is slow for a large one; a tenant alone has one size."""
    corpus.fill([*NOTES, *others], LONG)
    embed_windows(corpus.database, corpus.embedder, PAIRS, ALWAYS)
    pipeline = corpus.pipeline()
    for _ in range(8):
        ask(pipeline, QUESTIONS[0], CONFIGS["scaled"])
    with corpus.database.autocommit() as connection:
        kept = connection.execute(
            "SELECT name FROM pg_prepared_statements WHERE statement LIKE '%searched_chunks%'"
        ).fetchall()
    assert bool(kept) == (not others)


def test_what_changes_between_two_questions_is_seen_by_the_second(corpus: Windowed) -> None:
    """The last fresh note is indexed, all notes expire, others come: each is another plan."""
    pipeline = corpus.pipeline()
    config = CONFIGS["scaled"]
    before = ask(pipeline, QUESTIONS[0], config)
    assert ask(pipeline, QUESTIONS[0], config).results == before.results
    for drafts in (NOTES, [Draft(note.text, expired=True) for note in NOTES], [*NOTES, FRESH]):
        corpus.fill(drafts, LONG)
        embed_windows(corpus.database, corpus.embedder, PAIRS, ALWAYS)
        for _ in range(2):
            found = ask(pipeline, QUESTIONS[0], config).results
            assert found == ask(corpus.pipeline(), QUESTIONS[0], config).results
        assert bool(found) == (not drafts[0].expired)


def test_a_model_retired_between_two_questions_is_missed_as_before(corpus: Windowed) -> None:
    """Its tables are gone, which the statement of the last question names; the log says so once."""
    pipeline = corpus.pipeline()
    config = CONFIGS["weighted"]
    for _ in range(2):
        ask(pipeline, QUESTIONS[0], config)
    with corpus.database.transaction() as connection:
        retire_model(connection, "openai_hash")

    with capture_logs() as logged:
        response = pipeline.retrieve(QUESTIONS[0], config, deadline_ms=GENEROUS_MS)
        pipeline.retrieve(QUESTIONS[0], config, deadline_ms=GENEROUS_MS)

    assert [own["error"] for own in logged if own["event"] == "one_statement_failed"] == [
        "UndefinedTable"
    ]
    fresh = corpus.pipeline().retrieve(QUESTIONS[0], config, deadline_ms=GENEROUS_MS)
    assert response.degraded == fresh.degraded
    assert response.degraded
    assert response.messages == fresh.messages
    assert [result.chunk_id for result in response.results] == [
        result.chunk_id for result in fresh.results
    ]
