"""The open applications, one per tenant, up to a limit."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from threading import Lock

from rag_resources.api.problems import later
from rag_resources.application import Application, Switch, open_application
from rag_resources.database.server import API_LOGIN
from rag_resources.languages.messages import _
from rag_resources.settings import Settings

OPEN_TENANTS = 16
"""Tenants that a process has open at once."""


@dataclass
class _Open:
    application: Application
    closing: ExitStack
    users: int = 0


class Tenants:
    """Applications by tenant; those not in use are closed, longest unused first, to make room.

    Models are shared by the process; each tenant has connections and caches of its own, so that no
    session's setting and no cached answer passes from one to another.

    Args:
        settings: Its tenant's application stays open.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self.own = self._opened(settings.tenant)
        self._open[settings.tenant] = self.own
        self.own.users = 1  # for good

    @contextmanager
    def of(self, tenant: str) -> Iterator[Application]:
        """Use a tenant's application.

        Raises:
            ProblemError: 503: the largest number of tenants is in use.
            DatabaseError: The database cannot be reached.
        """
        with self._lock:
            entry = self._entry(tenant)
            entry.users += 1
        try:
            yield entry.application
        finally:
            with self._lock:
                entry.users -= 1

    def _entry(self, tenant: str) -> _Open:
        if tenant not in self._open:
            self._make_room()
            self._open[tenant] = self._opened(tenant)
        self._open.move_to_end(tenant)
        return self._open[tenant]

    def _make_room(self) -> None:
        if len(self._open) < OPEN_TENANTS:
            return
        idle = next((name for name, entry in self._open.items() if not entry.users), None)
        if idle is None:
            raise later(
                _("The service is busy. Try again in {seconds} s."),
                status=HTTPStatus.SERVICE_UNAVAILABLE,
            )
        self._open.pop(idle).closing.close()

    def _opened(self, tenant: str) -> _Open:
        settings = self._settings.model_copy(update={"tenant": tenant})
        with ExitStack() as stack:
            # Only the own tenant's models are loaded by a thread; see `api.app`.
            switch = Switch() if tenant == self._settings.tenant else None
            application = stack.enter_context(
                open_application(settings, switch=switch, login=API_LOGIN)
            )
            return _Open(application, stack.pop_all())

    def close(self) -> None:
        """Close them all."""
        with self._lock:
            for entry in self._open.values():
                entry.closing.close()
            self._open.clear()
