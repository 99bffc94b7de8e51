"""Property 48: with a higher threshold misses never fall and false answers never rise."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.silence import SilenceCase, silence_curve

CASES = st.lists(
    st.builds(
        SilenceCase,
        part=st.integers(0, 3),
        probability=st.none() | st.floats(0, 1),
        is_hidden=st.booleans(),
    ),
    max_size=40,
)


@given(CASES)
def test_property_48_more_silence_means_more_misses_and_fewer_false_answers(
    cases: list[SilenceCase],
) -> None:
    curve = silence_curve(cases)
    kinds = {case.is_hidden for case in cases}
    assert (curve is not None) == (kinds == {True, False})
    if curve is None:
        return
    for lower, higher in pairwise(curve.points):
        assert lower.threshold <= higher.threshold
        assert lower.missed <= higher.missed
        assert lower.false_answers >= higher.false_answers
    silent = [case for case in cases if case.height < curve.points[-1].threshold]
    missed = sum(not case.is_hidden for case in silent)
    assert missed <= curve.points[-1].allowed * curve.asked or curve.points[-1].threshold == 0
