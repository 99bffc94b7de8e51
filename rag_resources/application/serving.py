"""Use cases of the serving configuration: reads, promotes and withdraws it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from rag_resources.configurations import DEFAULT_CONFIGURATION, load_configurations
from rag_resources.core.configuration import NamedConfiguration, parse_retrieval
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import OvertakenPromotionError
from rag_resources.core.evidence import Evidence
from rag_resources.database.pool import Database
from rag_resources.evaluation.evidence import read_evidence
from rag_resources.languages.messages import Text
from rag_resources.serving.serving import Serving, read_serving
from rag_resources.settings import Settings
from rag_resources.store.contents import count_contents
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.promotions import (
    Promotion,
    current_promotion,
    promotions_outside_runs,
    settled_until,
)
from rag_resources.store.vector_indexes import index_model_that_serves

if TYPE_CHECKING:  # A question only reads what serves.
    from rag_resources.serving.promotion import PromotionOutcome
    from rag_resources.serving.rollback import Withdrawal

OVERTAKEN_PAUSES_S = (5.0, 15.0, 30.0)
"""How long a promotion waits before it tries again, after something was indexed meanwhile."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ServingConfiguration:
    """The serving configuration of a database.

    Attributes:
        evaluate: Evaluates a configuration in a run, and stores the evaluation.
    """

    database: Database
    settings: Settings
    evaluate: Callable[[NamedConfiguration, str | None], object]

    def read(self, default: NamedConfiguration, *, deadline: Deadline | None = None) -> Serving:
        """Return the serving configuration; the default before the first promotion."""
        with self.database.transaction(deadline) as connection:
            return read_serving(connection, default)

    def now(self) -> Serving:
        """Return the serving configuration; the product's default before the first promotion."""
        configurations = load_configurations(self.settings.configuration_folders)
        return self.read(configurations.named(DEFAULT_CONFIGURATION))

    def model_warning(self) -> Text | None:
        """Say that new notes do not get the vectors of what serves; None if they do."""
        serving = self.now()
        config = None if serving.problems else serving.config
        return self.settings.warning_about(serving.name, config)

    def promotion(self) -> Promotion | None:
        """Return the last promotion; None before the first."""
        with self.database.transaction() as connection:
            return current_promotion(connection)

    def outside_runs(
        self, after: tuple[datetime, int], *, limit: int
    ) -> list[tuple[int, Promotion]]:
        """Return the rollbacks, and the promotions that no Dagster run made, with their ids.

        They come oldest first, ties by id.

        Args:
            after: Time and id of the last one that is known already.
            limit: How many at most.
        """
        with self.database.transaction() as connection:
            until = settled_until(connection)
            return promotions_outside_runs(connection, after, until=until, limit=limit)

    def evidence(self) -> Evidence | None:
        """Return whether the latest evaluation of what serves is current, aged or stale.

        Returns:
            None if nothing was promoted, or it was never evaluated as it serves.
        """
        with self.database.transaction() as connection:
            promotion = current_promotion(connection)
            if promotion is None:
                return None
            evaluation = latest_evaluation(connection, promotion.configuration)
            if evaluation is None or evaluation.config_hash != promotion.config_hash:
                return None
            count_contents(connection)
            config = parse_retrieval(promotion.config, origin=promotion.configuration)
            return read_evidence(connection, evaluation, config, settings=self.settings.search)

    def promote(
        self,
        configurations: Mapping[str, NamedConfiguration],
        *,
        name: str | None,
        run_id: str | None,
    ) -> "PromotionOutcome":
        """Promote a candidate, by default the best one, and make sure its vector index exists.

        Candidates without a current evaluation are evaluated again first. So is the serving
        configuration, with which they are compared. If something was indexed meanwhile, so that
        the new figures are stale already, all of this is repeated, after pauses.

        Raises:
            RagError: See `promote_best` and `evaluate`.
        """
        from rag_resources.serving.promotion import promote_best

        again: list[NamedConfiguration] = []
        for pause_s in (*OVERTAKEN_PAUSES_S, None):
            again += self._evaluate_again(configurations, name, run_id)
            try:
                outcome = promote_best(
                    self.database,
                    configurations,
                    gate=self.settings.gate,
                    settings=self.settings.search,
                    name=name,
                    run_id=run_id,
                )
                break
            except OvertakenPromotionError as error:
                if pause_s is None:
                    raise
                _log.info("promotion_overtaken", reason=str(error), pause_s=pause_s)
                time.sleep(pause_s)
        index_model_that_serves(self.database, outcome.evaluation.model)
        return replace(outcome, evaluated_again=tuple(item.name for item in again))

    def _evaluate_again(
        self,
        configurations: Mapping[str, NamedConfiguration],
        name: str | None,
        run_id: str | None,
    ) -> list[NamedConfiguration]:
        """Evaluate what a promotion may not decide on as it is, and return it."""
        gate, settings = self.settings.gate, self.settings.search
        from rag_resources.serving.promotion import needing_evaluation

        again = needing_evaluation(
            self.database, configurations, gate=gate, settings=settings, name=name
        )
        for candidate in again:
            self.evaluate(candidate, run_id)
        return again

    def withdraw(
        self, name: str, *, reason: str, run_id: str | None, config_hash: str | None = None
    ) -> "Withdrawal":
        """Let the previous configuration serve again.

        Raises:
            RagError: See `serving.rollback.withdraw`.
        """
        from rag_resources.serving.rollback import withdraw

        return withdraw(self.database, name, reason=reason, run_id=run_id, config_hash=config_hash)

    def roll_back_to_notes(
        self, baseline: NamedConfiguration, *, reason: str, run_id: str | None, accept_missing: int
    ) -> bool:
        """Serve whole notes and delete all chunks; return whether what serves changed.

        Raises:
            RagError: See `serving.rollback.roll_back_to_notes`.
        """
        from rag_resources.serving.rollback import roll_back_to_notes

        return roll_back_to_notes(
            self.database, baseline, reason=reason, run_id=run_id, accept_missing=accept_missing
        )
