"""Which configuration answers: reading it, promoting one, taking it back."""

from collections.abc import Mapping
from dataclasses import dataclass

from rag_resources.core.configuration import NamedConfiguration
from rag_resources.database.pool import Database
from rag_resources.serving.promotion import PromotionOutcome, promote_best
from rag_resources.serving.rollback import Withdrawal, roll_back_to_notes, withdraw
from rag_resources.serving.serving import Serving, read_serving
from rag_resources.settings import Settings
from rag_resources.store.promotions import Promotion, current_promotion
from rag_resources.store.vector_indexes import index_model_that_serves


@dataclass(frozen=True, slots=True)
class ServingConfiguration:
    """What serves in a database."""

    database: Database
    settings: Settings

    def read(self, default: NamedConfiguration) -> Serving:
        """Return what serves; the default before the first promotion."""
        with self.database.transaction() as connection:
            return read_serving(connection, default)

    def promotion(self) -> Promotion | None:
        """Return what was promoted last; None before the first promotion."""
        with self.database.transaction() as connection:
            return current_promotion(connection)

    def promote(
        self,
        configurations: Mapping[str, NamedConfiguration],
        *,
        name: str | None,
        run_id: str | None,
    ) -> PromotionOutcome:
        """Promote a candidate, the best one without a name, and see to its vector index.

        Raises:
            RagError: See `promote_best`.
        """
        outcome = promote_best(
            self.database, configurations, gate=self.settings.gate, name=name, run_id=run_id
        )
        index_model_that_serves(
            self.database, outcome.evaluation.model, min_rows=self.settings.hnsw_min_rows
        )
        return outcome

    def withdraw(self, name: str, *, reason: str, run_id: str | None) -> Withdrawal:
        """Let what served before serve again.

        Raises:
            RagError: See `serving.rollback.withdraw`.
        """
        return withdraw(self.database, name, reason=reason, run_id=run_id)

    def roll_back_to_notes(
        self, baseline: NamedConfiguration, *, reason: str, run_id: str | None, accept_missing: int
    ) -> bool:
        """Serve whole notes and drop all chunks; return whether what serves changed.

        Raises:
            RagError: See `serving.rollback.roll_back_to_notes`.
        """
        return roll_back_to_notes(
            self.database, baseline, reason=reason, run_id=run_id, accept_missing=accept_missing
        )
