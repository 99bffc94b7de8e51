"""What an evaluation measured, and what makes it age: whoever writes, however."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.core.configuration import ChunkingConfig, NamedConfiguration, RetrievalConfig
from rag_resources.core.errors import GateNotPassedError
from rag_resources.core.evidence import Evidence, EvidenceState, SearchSettings
from rag_resources.core.gate import GateConfig
from rag_resources.core.golden import GoldenEntry
from rag_resources.database.pool import Connection, Database
from rag_resources.evaluation.evidence import count_and_read_evidence
from rag_resources.evaluation.runner import evaluate
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.serving.promotion import promote_best
from rag_resources.serving.rollback import roll_back_to_notes
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.contents import count_contents
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.golden import write_golden
from rag_resources.store.models import claim_model, register_model, retire_model
from rag_resources.store.notes import note_id
from tests.corpus import SMALL, SOURCE, Corpus, Draft

CANDIDATE = NamedConfiguration(
    name="candidata", description="x", retrieval=RetrievalConfig(model="hash_model")
)
BASELINE = NamedConfiguration(
    name="baseline",
    description="x",
    role="reference",
    retrieval=RetrievalConfig(model="hash_model", unit="notes", strategy="semantic"),
)
SETTINGS = SearchSettings("ana", "hash_model")
NOTES = 60
ASKED = 3
MORE = "Y de algo más que hoy no se cuenta aquí."
OTHER = ChunkingConfig(max_tokens=24, overlap_tokens=0, min_tokens=0)
LENIENT = GateConfig(hit_rate_at_10=0.1)

COUNTED = """
    SELECT month::text, part, fingerprint, row_count FROM month_contents WHERE is_present
"""
RECOUNTED = """
    SELECT
        c.month::text, c.part,
        left(encode(text_sha256(c.note_ids::text || c.note_hashes::text), 'hex'), 16), c.row_count
    FROM count_months(
        ARRAY(SELECT DISTINCT month_of(n.created_at) FROM notes AS n UNION SELECT '-infinity')
    ) AS c
"""


class Evaluated(Corpus):
    """A corpus whose configurations are evaluated."""

    @classmethod
    def filled(cls, database: Database, notes: int) -> "Evaluated":
        """A corpus of some notes, and the questions about the first of them."""
        made = cls(database)
        made.fill(
            [Draft(f"La nota {n} habla de asunto{n}, o eso parece. {MORE}") for n in range(notes)]
        )
        made.ask_for(range(ASKED))
        return made

    def take(self, step: str) -> None:
        """One of the steps of property 57."""
        if step in STEPS:
            with self.database.transaction() as connection:
                connection.execute(STEPS[step])  # type: ignore[call-overload]
        elif step == "chunked":
            self.index(SMALL)
        elif step == "chunked otherwise":
            self.index(OTHER)
        elif step == "model made again":
            self.make_model_again()
        elif step == "counted words":
            with self.database.transaction() as connection:
                refresh_statistics(connection)
        else:
            self.ask_for(range(ASKED if step == "all questions" else ASKED - 1))

    def make_model_again(self) -> None:
        """Retire the model, and make the same vectors again."""
        with self.database.transaction() as connection:
            claim_model(connection, "hash_model")
            retire_model(connection, "hash_model")
        with self.database.transaction() as connection:
            register_model(connection, self.embedder.info, embeds_chunks=True)
        self.index(SMALL)

    def note(self, number: int) -> UUID:
        """The id of a note by its number."""
        return note_id("ana", SOURCE, str(number))

    def ask_for(self, numbers: Iterable[int]) -> None:
        """Replace the golden questions by those about some notes."""
        entries = [
            GoldenEntry(f"¿Qué dice de asunto{n}?", (self.note(n),), "Algo.", "factual", 1)
            for n in numbers
        ]
        with self.database.transaction() as connection:
            write_golden(connection, entries, replace=True)

    def evaluate(
        self,
        item: NamedConfiguration = CANDIDATE,
        pipeline: RetrievalPipeline | None = None,
        progress: Callable[[int], None] = lambda _: None,
    ) -> dict[str, tuple[UUID, ...]]:
        """Evaluate a configuration, and return the notes that each question found in time."""
        done = evaluate(
            self.database,
            pipeline or self.pipeline(),
            item.name,
            item.retrieval,
            settings=SETTINGS,
            progress=progress,
        )
        return {
            outcome.golden.query: outcome.retrieved_note_ids
            for outcome in done.outcomes
            if not outcome.degraded
        }

    def evidence(
        self,
        item: NamedConfiguration = CANDIDATE,
        settings: SearchSettings = SETTINGS,
        gate: GateConfig = LENIENT,
    ) -> Evidence:
        """The state of the latest evaluation of a configuration."""
        with self.database.transaction() as connection:
            return evidence_of(connection, item, settings, gate)

    @contextmanager
    def after(self, statement: str) -> Iterator[Connection]:
        """A transaction that ran a statement, and is undone."""
        with self.database.transaction() as connection:
            connection.execute(statement)  # type: ignore[call-overload]
            yield connection
            connection.rollback()

    def promote(self) -> str:
        """Promote the candidate, on the evaluation that there is."""
        outcome = promote_best(
            self.database,
            {CANDIDATE.name: CANDIDATE},
            gate=LENIENT,
            settings=SETTINGS,
            name=CANDIDATE.name,
        )
        return outcome.evaluation.configuration

    def counted_is_what_is_there(self) -> bool:
        """As the function, now."""
        with self.database.transaction() as connection:
            return counted_is_what_is_there(connection)


def evidence_of(
    connection: Connection,
    item: NamedConfiguration = CANDIDATE,
    settings: SearchSettings = SETTINGS,
    gate: GateConfig = LENIENT,
) -> Evidence:
    """The state of the latest evaluation of a configuration."""
    found = latest_evaluation(connection, item.name)
    assert found
    (evidence,) = count_and_read_evidence(
        connection, [found], {item.name: item}, gate=gate, settings=settings
    ).values()
    return evidence


def counted_is_what_is_there(connection: Connection) -> bool:
    """Whether the counts that writers' marks led to equal those of everything."""
    count_contents(connection)
    return sorted(connection.execute(COUNTED)) == sorted(connection.execute(RECOUNTED))


@pytest.fixture
def corpus(database: Database) -> Evaluated:
    made = Evaluated.filled(database, NOTES)
    for item in (CANDIDATE, BASELINE):
        made.evaluate(item)
    return made


# --- Whatever search reads ----------------------------------------------------------------------

STALE = {
    "note of a question edited": (
        "UPDATE notes SET content = 'Nada.' WHERE external_id = '0'",
        "notas",
    ),
    "note of a question deleted": ("DELETE FROM notes WHERE external_id = '1'", "notas"),
    "tenant": "UPDATE notes SET tenant_id = 'otra' WHERE external_id = '2'",
    "many notes": "UPDATE notes SET title = 'x' WHERE external_id::int > 20",
    "half deleted": "DELETE FROM notes WHERE external_id::int >= 30",
    "all truncated": "TRUNCATE notes CASCADE",
    "words of notes": "UPDATE note_words SET tsv = ''",
    "chunk order": "UPDATE chunks SET topics = 'otros'",
    "chunks deleted": "DELETE FROM chunks",
    "chunks truncated": "TRUNCATE chunks CASCADE",
    "vectors": "UPDATE chunk_embeddings SET embedding = contextual_embedding",
    "vectors of the partition": (
        "UPDATE chunk_embeddings_hash_model SET embedding = contextual_embedding"
    ),
    "vectors deleted": "DELETE FROM chunk_embeddings_hash_model",
    "vectors truncated": "TRUNCATE chunk_embeddings",
    "partition truncated": "TRUNCATE chunk_embeddings_hash_model",
    "note vectors": "DELETE FROM note_embeddings",
    "queue": "INSERT INTO pending_embeddings (model, note_id) SELECT 'hash_model', id FROM notes",
    "words": "UPDATE lexeme_statistics SET document_count = document_count + 1",
    "corpus statistics": "UPDATE index_state SET average_lexeme_occurrences = 99",
    "threshold": "UPDATE embedding_models SET similarity_threshold = 0.5",
    "digest": "UPDATE embedding_models SET digest = 'otro'",
    "moved to another month": (
        "UPDATE notes SET created_at = created_at + interval '2 months' WHERE external_id::int > 20"
    ),
    "at the end of time": (
        "INSERT INTO notes (tenant_id, content, created_at) "
        "SELECT 'ana', 'Nueva ' || n, 'infinity' FROM generate_series(1, 20) AS n"
    ),
    "an index of the vectors": (
        "CREATE INDEX ON chunk_embeddings_hash_model USING hnsw "
        "((embedding::halfvec(32)) halfvec_cosine_ops)"
    ),
    "expired": (
        "UPDATE notes SET expires_at = clock_timestamp() + interval '1 microsecond' "
        "WHERE external_id = '0'"
    ),
}


def test_whoever_changes_what_was_measured_makes_it_stale(corpus: Evaluated) -> None:
    """By any statement, also one that names a partition; the counts stay exact, and say what."""
    for name, changed in STALE.items():
        statement, named = changed if isinstance(changed, tuple) else (changed, "")
        assert corpus.evidence().is_current
        with corpus.after(statement) as connection:
            evidence = evidence_of(connection)
            assert evidence.state is EvidenceState.STALE, name
            assert named in evidence.explanation
            assert counted_is_what_is_there(connection), name


def test_nothing_is_promoted_on_stale_evidence(corpus: Evaluated) -> None:
    corpus.fetch("DELETE FROM chunks RETURNING 1")
    with pytest.raises(GateNotPassedError, match="su última evaluación está obsoleta: "):
        corpus.promote()
    assert corpus.fetch("SELECT count(*) FROM promotions") == [(0,)]


SMALL_CHANGES = {
    "edited": "UPDATE notes SET content = 'Nada.' WHERE external_id = '50'",
    "deleted": "DELETE FROM notes WHERE external_id = '50'",
    "new": "INSERT INTO notes (tenant_id, content, created_at) VALUES ('ana', 'x', '2025-01-05')",
    "new month": "INSERT INTO notes (tenant_id, content, created_at) VALUES ('ana', 'x', now())",
    "moved": "UPDATE notes SET created_at = '2024-12-01' WHERE external_id = '50'",
    "its vectors": (
        "DELETE FROM chunk_embeddings AS e USING chunks AS c, notes AS n "
        "WHERE c.id = e.chunk_id AND n.id = c.note_id AND n.external_id = '50'"
    ),
}


def test_a_small_change_beside_the_questions_ages(corpus: Evaluated) -> None:
    """One note of sixty: within a limit of 2 %, not of 1 %; it is counted."""
    for name, statement in SMALL_CHANGES.items():
        with corpus.after(statement) as connection:
            evidence = evidence_of(connection)
            assert evidence.state is EvidenceState.AGED, name
            assert "notas cambiadas: 1 de" in evidence.explanation
            assert counted_is_what_is_there(connection), name
            strict = evidence_of(connection, gate=GateConfig(changed_notes=0.01))
            assert strict.state is EvidenceState.STALE, name


NO_CHANGES = {
    "nothing": "UPDATE notes SET content = 'x' WHERE FALSE",
    "other model": "INSERT INTO embedding_models VALUES ('otro', 3, 'test', '1', 0)",
    "the same again": "UPDATE chunks SET context = context",
    "there and back": (
        "UPDATE notes SET title = 'x'; UPDATE notes SET title = ''; "
        "UPDATE notes SET chunked_at = now()"
    ),
    "how long it took": "UPDATE index_state SET refreshed_at = now()",
}


def test_what_leaves_everything_as_it_was_leaves_it_current(corpus: Evaluated) -> None:
    for name, statement in NO_CHANGES.items():
        with corpus.after(statement) as connection:
            assert evidence_of(connection).is_current, name


def test_copied_rows_count(corpus: Evaluated) -> None:
    with (
        corpus.database.transaction() as connection,
        connection.cursor() as cursor,
        cursor.copy("COPY notes (tenant_id, content) FROM STDIN") as copy,
    ):
        for number in range(NOTES):
            copy.write_row(("ana", f"Copia {number}"))
    assert corpus.evidence().state is EvidenceState.STALE
    assert corpus.counted_is_what_is_there()


# --- What the product itself does ----------------------------------------------------------------


def test_a_rollback_makes_it_stale_but_not_what_searches_whole_notes(corpus: Evaluated) -> None:
    roll_back_to_notes(corpus.database, BASELINE, reason="Prueba.", run_id=None)
    assert corpus.evidence().state is EvidenceState.STALE
    assert "fragmentos" in corpus.evidence().explanation
    assert corpus.evidence(BASELINE).is_current


def test_chunking_again_makes_it_stale(corpus: Evaluated) -> None:
    corpus.index(OTHER)
    assert corpus.evidence().state is EvidenceState.STALE
    assert corpus.evidence(BASELINE).is_current


def test_rebuilt_word_statistics_make_it_stale(corpus: Evaluated) -> None:
    """They were those of one note less; rebuilt from the same chunks, nothing changes."""
    with corpus.database.transaction() as connection:
        refresh_statistics(connection)
    assert corpus.evidence().is_current
    corpus.fetch("DELETE FROM notes WHERE external_id = '50' RETURNING 1")
    assert corpus.evidence().state is EvidenceState.AGED
    with corpus.database.transaction() as connection:
        refresh_statistics(connection)
    evidence = corpus.evidence()
    assert evidence.state is EvidenceState.STALE
    assert "estadísticas de palabras" in evidence.explanation


def test_a_model_made_again_under_the_same_name_makes_it_stale(corpus: Evaluated) -> None:
    """Even with the same vectors: nothing says that they are the same but the vectors."""
    corpus.make_model_again()
    evidence = corpus.evidence()
    assert evidence.state is EvidenceState.STALE
    assert "modelo" in evidence.explanation
    assert corpus.counted_is_what_is_there()


def test_other_questions_or_fewer_make_it_stale(corpus: Evaluated) -> None:
    corpus.ask_for(range(ASKED - 1))
    assert corpus.evidence().state is EvidenceState.STALE
    corpus.ask_for(range(1, ASKED + 1))
    assert "preguntas" in corpus.evidence().explanation
    corpus.ask_for(range(ASKED))
    assert corpus.evidence().is_current


def test_another_configuration_under_the_name_makes_it_stale(corpus: Evaluated) -> None:
    edited = CANDIDATE.model_copy(
        update={"retrieval": RetrievalConfig(model="hash_model", diversity_weight=0.5)}
    )
    evidence = corpus.evidence(edited)
    assert evidence.state is EvidenceState.STALE
    assert "la configuración ha cambiado" in evidence.explanation


def test_other_settings_make_it_stale(corpus: Evaluated) -> None:
    """What was measured for one tenant says nothing of another, nor with a language model."""
    for other in (
        SearchSettings("otra", "hash_model"),
        SearchSettings("ana", "hash_model", "x"),
    ):
        assert "ajustes" in corpus.evidence(settings=other).explanation


def test_an_evaluation_from_before_this_was_recorded_is_stale(corpus: Evaluated) -> None:
    corpus.fetch("UPDATE evaluation_results SET contents = NULL RETURNING 1")
    assert corpus.evidence().state is EvidenceState.STALE
    with pytest.raises(GateNotPassedError, match="no guardó qué midió"):
        corpus.promote()


def test_a_clock_set_back_shows(corpus: Evaluated) -> None:
    """Notes that were hidden when it was measured are visible again: all of this is compared."""
    corpus.fetch(
        "UPDATE notes SET expires_at = now() + interval '1 hour' WHERE external_id = '0' "
        "RETURNING 1"
    )
    corpus.evaluate()
    assert corpus.evidence().is_current
    corpus.fetch("UPDATE evaluation_results SET measured_at = now() + interval '1 day' RETURNING 1")
    assert corpus.evidence().state is EvidenceState.STALE
    assert "caducadas" in corpus.evidence().explanation


# --- Somebody else at work ----------------------------------------------------------------------


@pytest.fixture
def writer(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url) as connection:
        yield connection


def test_writers_of_one_month_do_not_wait_for_each_other(
    corpus: Evaluated, writer: psycopg.Connection[Any], database_url: str
) -> None:
    """Nor does who counts wait for them; what they commit later is counted then."""
    added = "INSERT INTO notes (tenant_id, content, created_at) VALUES ('ana', %s, '2025-01-05')"
    writer.execute(added, ["Una."])
    with psycopg.connect(database_url) as other:
        other.execute("SET lock_timeout = '1s'")
        other.execute(added, ["Otra."])
        assert corpus.evidence().is_current
        other.commit()
        assert corpus.evidence().state is EvidenceState.AGED
        writer.commit()
        assert "notas cambiadas: 2 de 62" in corpus.evidence().explanation
    assert corpus.counted_is_what_is_there()


def test_a_writer_that_rolls_back_leaves_nothing(
    corpus: Evaluated, writer: psycopg.Connection[Any]
) -> None:
    writer.execute("DELETE FROM chunks")
    writer.rollback()
    assert corpus.evidence().is_current
    assert corpus.fetch("SELECT count(*) FROM changed_months") == [(0,)]


def test_what_is_hidden_while_it_is_measured_is_found_out(
    corpus: Evaluated, writer: psycopg.Connection[Any]
) -> None:
    """Both ends look the same; only the marks tell that the middle did not."""
    hide = (
        "UPDATE chunk_embeddings "
        "SET embedding = contextual_embedding, contextual_embedding = embedding"
    )

    def swap(_: int) -> None:
        writer.execute(hide)
        writer.commit()

    corpus.evaluate(progress=swap)
    assert corpus.evidence().state is EvidenceState.STALE
    swap(1)  # Now it is as it was when it began.
    assert corpus.evidence().state is EvidenceState.STALE

    def swap_twice(_: int) -> None:
        swap(1)
        swap(1)

    corpus.evaluate(progress=swap_twice)
    assert corpus.evidence().state is EvidenceState.STALE
    corpus.evaluate()
    assert corpus.evidence().is_current


def test_a_small_change_while_it_is_measured_only_ages_it(
    corpus: Evaluated, writer: psycopg.Connection[Any]
) -> None:
    """Otherwise nothing could be promoted while people write notes."""

    def add(_: int) -> None:
        writer.execute("UPDATE notes SET title = title || 'x' WHERE external_id = '50'")
        writer.commit()

    corpus.evaluate(progress=add)
    assert corpus.evidence().state is EvidenceState.AGED
    assert corpus.promote() == "candidata"


def test_past_contents_are_kept_only_while_an_evaluation_names_them(corpus: Evaluated) -> None:
    corpus.fetch("UPDATE notes SET title = 'x' RETURNING 1")
    corpus.evidence()
    past = "SELECT count(*) > 0 FROM month_contents WHERE NOT is_present"
    assert corpus.fetch(past) == [(True,)]
    for item in (CANDIDATE, BASELINE):
        corpus.evaluate(item)
    assert corpus.fetch(past) == [(False,)]


# --- Whatever happens, in whatever order ---------------------------------------------------------

EDITED = CANDIDATE.model_copy(
    update={"retrieval": RetrievalConfig(model="hash_model", diversity_weight=0.5)}
)
STEPS = {
    "chunks dropped": "DELETE FROM chunks",
    "one chunk dropped": (
        "DELETE FROM chunks WHERE id IN (SELECT id FROM chunks ORDER BY id LIMIT 1)"
    ),
    "note to be chunked": "UPDATE notes SET chunked_at = NULL WHERE external_id = '3'",
    "note of a question to be chunked": (
        "UPDATE notes SET chunked_at = NULL WHERE external_id = '0'"
    ),
    "note deleted": "DELETE FROM notes WHERE external_id = '5'",
    "note of a question deleted": "DELETE FROM notes WHERE external_id = '1'",
    "vectors exchanged": (
        "UPDATE chunk_embeddings "
        "SET embedding = contextual_embedding, contextual_embedding = embedding"
    ),
    "titled": "UPDATE notes SET title = 'asunto1' WHERE external_id = '4'",
    "untitled": "UPDATE notes SET title = '' WHERE external_id = '4'",
}
OTHER_STEPS = ("chunked", "chunked otherwise", "model made again", "counted words",
               "fewer questions", "all questions", "edited", "unedited")  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(st.sampled_from([*STEPS, *OTHER_STEPS]), max_size=4))
def test_property_57_whatever_happened_current_means_that_measuring_again_tells_the_same(
    database: Database, steps: list[str]
) -> None:
    """Rollback, deletion, re-chunking, a model made again, edits of questions and configuration."""
    corpus = Evaluated.filled(database, 8)
    measured = corpus.evaluate()
    candidate = CANDIDATE
    for step in steps:
        if step in ("edited", "unedited"):
            candidate = EDITED if step == "edited" else CANDIDATE
        else:
            corpus.take(step)
    if corpus.evidence(candidate).is_current:
        again = corpus.evaluate(candidate)
        for question in measured.keys() & again.keys():
            assert again[question] == measured[question]
    assert corpus.counted_is_what_is_there()
