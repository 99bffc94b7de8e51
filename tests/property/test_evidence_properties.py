"""The rule of evidence; property 57 on a real index is in tests/integration/test_evidence.py."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.evidence import (
    MOST_CHANGED_NOTES,
    ChangedNotes,
    EvidenceState,
    judge_evidence,
    moved_parts,
    settled,
)

MONTHS = ("2025-01-01", "2025-02-01", "-infinity")
PARTS = ("notes", "chunks", "chunk/m", "words")

contents = st.dictionaries(
    st.sampled_from(MONTHS),
    st.dictionaries(st.sampled_from(PARTS), st.sampled_from("abc"), min_size=1),
)
changes = st.builds(
    ChangedNotes,
    notes=st.integers(0, 100),
    changed=st.integers(0, 100),
    relevant=st.integers(0, 3),
    expired=st.integers(0, 3),
    is_known=st.booleans(),
)


@given(contents, contents, changes, st.booleans(), st.booleans())
def test_current_if_nothing_differs_and_aged_within_the_bound(
    recorded: Any, present: Any, notes: ChangedNotes, config: bool, golden: bool
) -> None:
    """Current only if nothing differs; aged only within the bound and beside the questions."""
    moved = moved_parts(recorded, present)
    evidence = judge_evidence(same_config=config, same_golden=golden, moved=moved, notes=notes)
    nothing = recorded == present and config and golden and not notes.expired
    assert evidence.is_current is nothing
    assert bool(evidence.reasons) is not nothing
    if evidence.state is EvidenceState.AGED:
        assert config
        assert golden
        assert notes.is_known
        assert notes.relevant == 0
        assert notes.changed <= MOST_CHANGED_NOTES * notes.notes
        assert not any(item.part == "words" for item in moved)


@given(
    contents,
    contents,
    st.sets(st.tuples(st.sampled_from(MONTHS), st.sampled_from(PARTS))),
    st.booleans(),
)
def test_what_was_written_to_meanwhile_is_never_current(
    before: Any, after: Any, rewritten: set[tuple[str, str]], is_small: bool
) -> None:
    """Not even once it is as it was when the evaluation began, or when it ended."""
    recorded = settled(before, after, rewritten, is_small=is_small)
    disturbed = bool(moved_parts(before, after)) or any(
        part in before.get(month, {}) for month, part in rewritten
    )
    for present in (before, after):
        assert bool(moved_parts(recorded, present)) is disturbed
