"""Which words of a passage are those of the question."""

import pytest

from rag_resources.core.wording import says_something


@pytest.mark.parametrize(
    ("question", "says"),
    [("🎉", False), ("¿qué es lo de la?", False), ("gata", True), ("¿2025?", True), ("", False)],
)
def test_only_stop_words_say_nothing(question: str, says: bool) -> None:
    assert says_something(question) is says
