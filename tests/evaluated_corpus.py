"""A small corpus whose configurations are evaluated, and what changes what was measured.

What a test does to it is in `tests.integration`.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from rag_resources.application.serving import ServingConfiguration
from rag_resources.core.configuration import ChunkingConfig, NamedConfiguration, RetrievalConfig
from rag_resources.core.evidence import Evidence, SearchSettings
from rag_resources.core.gate import GateConfig
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.retrievers import VectorKind
from rag_resources.database.pool import Connection, Database
from rag_resources.evaluation.evidence import count_and_read_evidence
from rag_resources.evaluation.runner import evaluate
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.serving.promotion import PromotionOutcome, promote_best
from rag_resources.settings import load_settings
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.contents import count_contents
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.golden import write_golden
from rag_resources.store.models import claim_model, register_model, retire_model
from rag_resources.store.notes import note_id
from tests.corpus import SMALL, SOURCE, Corpus, Draft
from tests.embedders import HashEmbedder
from tests.stored_evaluations import forge

CANDIDATE = NamedConfiguration(
    name="candidata", description="x", retrieval=RetrievalConfig(model="openai_hash")
)
BASELINE = NamedConfiguration(
    name="baseline",
    description="x",
    role="reference",
    retrieval=RetrievalConfig(model="openai_hash", unit="notes", strategy="semantic"),
)
SETTINGS = SearchSettings("ana")
NOTES = 60
ASKED = 3
MORE = "Y de algo más que dentro no se cuenta aquí."
OTHER = ChunkingConfig(max_tokens=24, overlap_tokens=0, min_tokens=0)
LENIENT = GateConfig(hit_rate_at_10=0.1)

COUNTED = """
    SELECT month::text, part, fingerprint, row_count FROM month_contents WHERE is_present
"""
RECOUNTED = """
    SELECT
        c.month::text, c.part,
        left(encode(text_sha256(c.note_ids::text || c.note_hashes::text), 'hex'), 16), c.row_count
    FROM (
        SELECT n.tenant_id, month_of(n.created_at) AS month FROM notes AS n
        UNION
        SELECT s.tenant_id, s.month FROM month_contents AS s WHERE s.month = '-infinity'
    ) AS m
    CROSS JOIN LATERAL count_months(ARRAY[m.tenant_id], ARRAY[m.month]) AS c
"""


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
        "UPDATE vectors AS v SET embedding = o.embedding FROM vectors AS o "
        "WHERE o.chunk_id = v.chunk_id AND o.kind <> v.kind "
        "AND 'window' NOT IN (o.kind, v.kind)"
    ),
    "titled": "UPDATE notes SET title = 'asunto1' WHERE external_id = '4'",
    "untitled": "UPDATE notes SET title = '' WHERE external_id = '4'",
}


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

    @classmethod
    def found(cls, database: Database) -> "Evaluated":
        """The corpus of a copied database, as it is."""
        made = cls.__new__(cls)
        made.database, made.embedder = database, HashEmbedder()
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
            claim_model(connection, "openai_hash")
            retire_model(connection, "openai_hash")
        with self.database.transaction() as connection:
            register_model(
                connection,
                self.embedder.info,
                {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
            )
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
        *,
        store: bool = True,
    ) -> dict[str, tuple[UUID, ...]]:
        """Evaluate a configuration, and return the notes that each question found in time."""
        done = evaluate(
            self.database,
            pipeline or self.pipeline(),
            item.name,
            item.retrieval,
            settings=SETTINGS,
            progress=progress,
            store=store,
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
    ) -> Evidence:
        """The state of the latest evaluation of a configuration."""
        with self.database.transaction() as connection:
            return evidence_of(connection, item, settings)

    @contextmanager
    def after(self, statement: str) -> Iterator[Connection]:
        """A transaction that ran a statement, and is undone."""
        with self.database.transaction() as connection:
            connection.execute(statement)  # type: ignore[call-overload]
            yield connection
            connection.rollback()

    def forge(self, statement: str) -> None:
        """Run a statement that triggers refuse."""
        with self.database.transaction() as connection:
            forge(connection)
            connection.execute(statement)  # type: ignore[call-overload]

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
) -> Evidence:
    """The state of the latest evaluation of a configuration."""
    found = latest_evaluation(connection, item.name)
    assert found
    (evidence,) = count_and_read_evidence(
        connection, [found], {item.name: item}, settings=settings
    ).values()
    return evidence


def counted_is_what_is_there(connection: Connection) -> bool:
    """Whether the counts that writers' marks led to equal those of everything."""
    count_contents(connection)
    return sorted(connection.execute(COUNTED)) == sorted(connection.execute(RECOUNTED))


OTHER_CANDIDATE = CANDIDATE.model_copy(
    update={
        "name": "otra",
        "retrieval": CANDIDATE.retrieval.model_copy(update={"contextual": False}),
    }
)
BOTH = {item.name: item for item in (CANDIDATE, OTHER_CANDIDATE)}


@dataclass
class Product:
    """A corpus that is promoted from as by the job; `configurations` are as their files are now."""

    corpus: Evaluated
    configurations: dict[str, NamedConfiguration]
    gate: GateConfig = LENIENT
    settings: SearchSettings = SETTINGS
    afterwards: Callable[[], object] = bool

    def promote(self, name: str | None = None) -> PromotionOutcome:
        """Promote as the job does: what is not current is evaluated again."""
        settings = load_settings(
            tenant=self.settings.tenant,
            note_embedding_model="openai_hash",
            gate=self.gate,
        )
        serving = ServingConfiguration(
            self.corpus.database, settings, lambda item, _: self.evaluate(item)
        )
        return serving.promote(self.configurations, name=name, run_id=None)

    def decide(self, name: str) -> PromotionOutcome:
        """Promote on the evaluations that there are."""
        return promote_best(
            self.corpus.database,
            self.configurations,
            gate=self.gate,
            settings=self.settings,
            name=name,
        )

    def evaluate(self, item: NamedConfiguration) -> None:
        """Evaluate as a promotion does, then do what `afterwards` says."""
        self.corpus.evaluate(item)
        self.afterwards()
