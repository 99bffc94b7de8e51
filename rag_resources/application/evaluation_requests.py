"""Use cases of requested evaluations: requesting one, its state, and running them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from rag_resources.core.errors import RagError
from rag_resources.database.pool import Database
from rag_resources.languages.messages import ngettext
from rag_resources.settings import Settings
from rag_resources.store.evaluation_requests import (
    EvaluationRequest,
    OpenRequest,
    begin_request,
    count_open_requests,
    fetch_request,
    finish_request,
    insert_request,
    open_requests,
)

if TYPE_CHECKING:
    from rag_resources.application.wiring import Application

MOST_ATTEMPTS = 3
"""A request fails after this many killed runs, because it may be what kills them."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class EvaluationRequests:
    """The requested evaluations of one tenant; those waiting to be run are of all tenants."""

    database: Database
    settings: Settings

    def ask(self, configuration: str, *, requested_by: str = "") -> EvaluationRequest:
        """Request an evaluation; if the same request waits already, return that one."""
        with self.database.transaction() as connection:
            return insert_request(
                connection,
                tenant=self.settings.tenant,
                configuration=configuration,
                requested_by=requested_by,
            )

    def find(self, request_id: UUID) -> EvaluationRequest | None:
        """Return a request; None if there is none."""
        with self.database.transaction() as connection:
            return fetch_request(connection, request_id, tenant=self.settings.tenant)

    def count_open(self) -> int:
        """Return how many requests of the tenant are not finished."""
        with self.database.transaction() as connection:
            return count_open_requests(connection, tenant=self.settings.tenant)

    def waiting(self) -> Sequence[OpenRequest]:
        """Return the requests of all tenants that are not finished, oldest first."""
        with self.database.transaction() as connection:
            return open_requests(connection)

    def work_off(
        self,
        request: OpenRequest,
        application: "Application",
        *,
        run_id: str | None = None,
        progress: Callable[[int], None] = lambda _: None,
    ) -> UUID | None:
        """Run the requested evaluation, once; only one run at a time may do so.

        Args:
            request: One that is not finished. If it was begun before, that run is gone.
            application: The application of the request's tenant.
            run_id: Dagster's run.
            progress: As for `Evaluations.run`.

        Returns:
            The evaluation; None if it failed (the request then says why) or was finished already.
        """
        with self.database.transaction() as connection:
            attempts = begin_request(connection, request)
        if attempts is None:
            return None
        if attempts > MOST_ATTEMPTS:
            self._fail(
                request,
                ngettext(
                    "It was interrupted once and is not tried again.",
                    "It was interrupted {count} times and is not tried again.",
                    MOST_ATTEMPTS,
                ).format(count=MOST_ATTEMPTS),
            )
            return None
        try:
            configuration = application.configuration(request.configuration)
            made = application.evaluations.run(configuration, run_id=run_id, progress=progress)
        except RagError as error:
            self._fail(request, error.message)
            return None
        with self.database.transaction() as connection:
            finish_request(connection, request, evaluation_id=made.evaluation_id)
        return made.evaluation_id

    def _fail(self, request: OpenRequest, reason: str) -> None:
        _log.warning("requested_evaluation_failed", request_id=str(request.request_id))
        with self.database.transaction() as connection:
            finish_request(connection, request, error=reason)
