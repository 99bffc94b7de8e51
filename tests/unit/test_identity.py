"""What the API remembers of keys, between two looks into the database."""

from functools import partial
from itertools import chain, repeat

import pytest
from cachetools import TTLCache

from rag_resources.api import identity
from rag_resources.api.identity import Door
from rag_resources.core.errors import DatabaseUnavailableError
from rag_resources.settings import load_settings


class Application:
    """Knows no key, or its database does not answer."""

    def __init__(self) -> None:
        self.is_up = True
        self.keys = self

    def find(self, _: str) -> None:
        if not self.is_up:
            raise DatabaseUnavailableError("apagada")


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
    door._stored("clave", asks=True)
    application.is_up = is_up
    for _ in range(3):
        try:
            door._stored("clave", asks=True)
        except DatabaseUnavailableError:
            assert not is_up
