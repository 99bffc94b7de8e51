"""What the product shows without data is as it is stored; `make snapshots` compares the rest."""

import pytest

from tests.snapshots.comparison import differences, stored
from tests.snapshots.surfaces import CHEAP


@pytest.mark.parametrize("surface", CHEAP)
def test_the_surface_is_as_stored(surface: str) -> None:
    """A change on purpose is stored by `make snapshots UPDATE=1` and named in its commit."""
    assert list(differences(stored(surface), CHEAP[surface]())) == []
