"""Derives the progress of a document in each stage from its status."""

from collections.abc import Collection, Mapping
from enum import StrEnum

STAGES = ("downloading", "extracting", "chunking", "embedding")
"""In order; a document's status is the stage that it is in, or one of those below."""

_PENDING, _FAILED = "pending", "failed"


class StageState(StrEnum):
    """The progress of a document in a stage."""

    DONE = "done"
    RUNNING = "running"
    WAITING = "waiting"
    FAILED = "failed"


def stages_of(status: str, failed: Collection[str], *, has_file: bool) -> Mapping[str, StageState]:
    """Return the state of each stage.

    Args:
        status: The document's: a stage, `pending`, `completed`, `partial` or `failed`.
        failed: The stages in which a part of it failed.
        has_file: Whether we have a copy of its file.
    """
    first_failed = min((STAGES.index(stage) for stage in failed), default=len(STAGES))
    if status in STAGES:
        reached = STAGES.index(status)
    elif status == _PENDING:
        reached = 1 if has_file else 0
    else:
        reached = first_failed if status == _FAILED else len(STAGES)
    states = {}
    for place, stage in enumerate(STAGES):
        if stage in failed:
            states[stage] = StageState.FAILED
        elif place < reached:
            states[stage] = StageState.DONE
        elif place == reached and status == stage:
            states[stage] = StageState.RUNNING
        else:
            states[stage] = StageState.WAITING
    return states
