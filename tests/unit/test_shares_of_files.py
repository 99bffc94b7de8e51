"""How many passages each of several named files gets."""

import pytest

from rag_resources.application.searching import shares_of


@pytest.mark.parametrize(
    ("found", "wanted", "shares"),
    [
        (["abcde", "vwxyz"], 5, ["abc", "vwx"]),
        (["ab", "yz"], 5, ["ab", "yz"]),
        (["abc", ""], 1, ["a", ""]),
        (["ab", "cd", "ef"], 2, ["a", "c", "e"]),
    ],
)
def test_small_files_keep_all_their_passages(
    found: list[str], wanted: int, shares: list[str]
) -> None:
    assert shares_of([tuple(own) for own in found], wanted) == [tuple(own) for own in shares]
