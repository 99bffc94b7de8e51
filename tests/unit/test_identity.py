"""What the API remembers of keys and quotas, between two looks into the database."""

from functools import partial
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import pytest
from cachetools import TTLCache

from rag_resources.api import identity
from rag_resources.api.identity import Caller, Door
from rag_resources.core.api_keys import ApiRole
from rag_resources.core.errors import DatabaseUnavailableError
from rag_resources.settings import load_settings


class Application:
    """Says that nobody has a quota, or that the database does not answer."""

    def __init__(self) -> None:
        self.is_up = True
        self.tenants = self

    def quota(self, _: str) -> Any:
        if not self.is_up:
            raise DatabaseUnavailableError("apagada")
        return SimpleNamespace(questions_a_minute=None)


@pytest.mark.parametrize("is_up", [True, False])
@pytest.mark.parametrize("moment", range(12))
def test_what_is_known_may_expire_while_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, moment: int, is_up: bool
) -> None:
    """Even between two looks at the clock; then the database is asked."""
    times = chain([0.0] * moment, repeat(1e9))
    monkeypatch.setattr(identity, "TTLCache", partial(TTLCache, timer=lambda: next(times)))
    application = Application()
    door = Door(load_settings(), application)  # type: ignore[arg-type]
    caller = Caller("ana", ApiRole.OWNER)
    door.count_question(caller)
    application.is_up = is_up
    for _ in range(3):
        try:
            door.count_question(caller)
        except DatabaseUnavailableError:
            assert not is_up
