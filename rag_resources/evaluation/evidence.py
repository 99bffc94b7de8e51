"""Whether stored evaluations still stand for what they measured. The rule is `core.evidence`."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import (
    ChangedNotes,
    Contents,
    Evidence,
    EvidenceState,
    SearchSettings,
    judge_evidence,
    moved_parts,
    settled,
)
from rag_resources.core.gate import GateConfig
from rag_resources.core.golden import GoldenEntry, golden_hash
from rag_resources.database.pool import Connection
from rag_resources.store.contents import (
    Reading,
    count_contents,
    read_changes,
    read_contents,
)
from rag_resources.store.golden import list_golden


def count_and_read_evidence(
    connection: Connection,
    evaluations: Iterable[StoredEvaluation],
    configurations: Mapping[str, NamedConfiguration],
    *,
    gate: GateConfig,
    settings: SearchSettings,
) -> dict[UUID, Evidence]:
    """Return the state of evaluations by id, with everything counted that was written so far.

    Args:
        connection: In a transaction of its own, not a snapshot.
        evaluations: To judge.
        configurations: As they are now, by name.
        gate: As `read_evidence`.
        settings: As `read_evidence`.
    """
    count_contents(connection)
    named = {name: item.retrieval for name, item in configurations.items()}
    return {
        item.evaluation_id: read_evidence(
            connection, item, named.get(item.configuration), gate=gate, settings=settings
        )
        for item in evaluations
    }


def read_evidence(
    connection: Connection,
    evaluation: StoredEvaluation,
    config: RetrievalConfig | None,
    *,
    gate: GateConfig,
    settings: SearchSettings,
) -> Evidence:
    """Return the state of an evaluation.

    Args:
        connection: Any, after `store.contents.count_contents`; what was written since counts as
            changed.
        evaluation: To judge.
        config: The configuration as it is now; None if it is gone.
        gate: How much may have changed.
        settings: The present ones.
    """
    entries = list_golden(connection)
    same_config = config is not None and config.config_hash == evaluation.config_hash
    moved, notes = None, ChangedNotes()
    if evaluation.contents is not None and evaluation.measured_at and config and same_config:
        present = read_contents(connection, config, settings).contents
        moved = moved_parts(evaluation.contents, present)
        notes = read_changes(
            connection, moved, measured_at=evaluation.measured_at, relevant=_relevant(entries)
        )
    return judge_evidence(
        same_config=same_config,
        same_golden=golden_hash(entries) == evaluation.golden_hash,
        moved=moved if same_config else [],
        notes=notes,
        most=gate.changed_notes,
    )


def contents_measured(
    connection: Connection,
    searched: Reading,
    config: RetrievalConfig,
    entries: Sequence[GoldenEntry],
    *,
    gate: GateConfig,
    settings: SearchSettings,
) -> Contents:
    """Return what an evaluation that ends now records as measured.

    Args:
        connection: In a transaction, after `store.contents.count_contents`.
        searched: What it searched as it began.
        config: The configuration.
        entries: The questions that it asked.
        gate: How much may have changed meanwhile.
        settings: The present ones.
    """
    now = read_contents(connection, config, settings)
    moved = moved_parts(searched.contents, now.contents)
    notes = read_changes(
        connection, moved, measured_at=searched.read_at, relevant=_relevant(entries)
    )
    evidence = judge_evidence(
        same_config=True, same_golden=True, moved=moved, notes=notes, most=gate.changed_notes
    )
    return settled(
        searched.contents,
        now.contents,
        searched.rewritten(now),
        is_small=evidence.state is not EvidenceState.STALE,
    )


def _relevant(entries: Sequence[GoldenEntry]) -> set[UUID]:
    return {note for entry in entries for note in entry.relevant_note_ids}
