"""The normalisation of scores, with values computed by hand."""

from rag_resources.core.fusion import min_max


def test_scores_are_stretched_from_0_to_1_and_equal_ones_are_all_1() -> None:
    assert min_max([0.5, 0.25, 0.75]) == [0.5, 0.0, 1.0]
    assert min_max([0.3, 0.3]) == [1.0, 1.0]
    assert min_max([]) == []
