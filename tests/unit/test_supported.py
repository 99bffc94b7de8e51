"""Whether what a language model wrote is in the passage that it cites: 60 pairs made by hand."""

from pathlib import Path

import pytest

from rag_resources.answers.checking import SupportChecker
from rag_resources.providers.embedded_use import USEEmbedder

LINES = (Path(__file__).parents[1] / "data" / "supported.txt").read_text("utf-8").splitlines()
PAIRS = [[part.strip() for part in line.split("|")] for line in LINES if not line.startswith("#")]
KNOWN_MISSES = 1
KNOWN_PASSED = 0


@pytest.fixture(scope="module")
def checker() -> SupportChecker:
    return SupportChecker(USEEmbedder)


def test_what_a_passage_says_passes_and_what_it_does_not_say_is_refused(
    checker: SupportChecker,
) -> None:
    """Both kinds of error are known: neither may grow."""
    found = {
        (passage, sentence): bool(checker.support("", sentence, [(1, passage)]))
        for passage, sentence, _ in PAIRS
    }
    missed = [own for *own, said in PAIRS if said == "yes" and not found[own[0], own[1]]]
    passed = [own for *own, said in PAIRS if said == "no" and found[own[0], own[1]]]
    assert (len(PAIRS), len(missed), len(passed)) == (60, KNOWN_MISSES, KNOWN_PASSED), (
        missed,
        passed,
    )
