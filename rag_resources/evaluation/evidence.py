"""Says which stored evaluations are current, aged or stale. The rule is in `core.evidence`."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import (
    ChangedNotes,
    Contents,
    Evidence,
    EvidenceState,
    Moved,
    SearchSettings,
    judge_evidence,
    moved_parts,
    settled,
)
from rag_resources.core.golden import GoldenEntry, golden_hash
from rag_resources.database.pool import Connection
from rag_resources.store.contents import (
    Reading,
    count_contents,
    read_changes,
    read_contents,
)
from rag_resources.store.golden import asked_golden


def count_and_read_evidence(
    connection: Connection,
    evaluations: Iterable[StoredEvaluation],
    configurations: Mapping[str, NamedConfiguration],
    *,
    settings: SearchSettings,
) -> dict[UUID, Evidence]:
    """Return the state of evaluations by id, after counting everything written so far.

    Args:
        connection: In a transaction of its own, not a snapshot.
        evaluations: To judge.
        configurations: As they are now, by name.
        settings: As `read_evidence`.
    """
    count_contents(connection)
    reader = EvidenceReader(connection, settings)
    named = {name: item.retrieval for name, item in configurations.items()}
    return {
        item.evaluation_id: reader.judge(item, named.get(item.configuration))
        for item in evaluations
    }


def read_evidence(
    connection: Connection,
    evaluation: StoredEvaluation,
    config: RetrievalConfig | None,
    *,
    settings: SearchSettings,
) -> Evidence:
    """Return the state of one evaluation; the arguments are those of `EvidenceReader`."""
    return EvidenceReader(connection, settings).judge(evaluation, config)


class EvidenceReader:
    """Judges evaluations in one transaction; reads the questions and contents only once.

    Args:
        connection: Any, after `store.contents.count_contents`; what was written since counts as
            changed.
        settings: The present ones.
    """

    def __init__(self, connection: Connection, settings: SearchSettings) -> None:
        self._connection = connection
        self._settings = settings
        entries = asked_golden(connection)
        self._golden_hash = golden_hash(entries)
        self._relevant = _relevant(entries)
        self._present: dict[str, Contents] = {}

    def judge(self, evaluation: StoredEvaluation, config: RetrievalConfig | None) -> Evidence:
        """Return the state of an evaluation.

        Args:
            evaluation: To judge.
            config: The configuration as it is now; None if it is gone.
        """
        same_config = config is not None and config.config_hash == evaluation.config_hash
        moved: list[Moved] = []
        notes = ChangedNotes()
        if config and same_config:
            moved = moved_parts(evaluation.contents, self._contents(config))
            notes = read_changes(
                self._connection,
                moved,
                tenant=self._settings.tenant,
                measured_at=evaluation.measured_at,
                relevant=self._relevant,
            )
        return judge_evidence(
            same_config=same_config,
            same_golden=self._golden_hash == evaluation.golden_hash,
            moved=moved,
            notes=notes,
        )

    def _contents(self, config: RetrievalConfig) -> Contents:
        key = config.config_hash
        if key not in self._present:
            self._present[key] = read_contents(self._connection, config, self._settings).contents
        return self._present[key]


def contents_measured(
    connection: Connection,
    searched: Reading,
    config: RetrievalConfig,
    entries: Sequence[GoldenEntry],
    *,
    settings: SearchSettings,
) -> Contents:
    """Return what an evaluation that ends now records as measured.

    Args:
        connection: In a transaction, after `store.contents.count_contents`.
        searched: What was searched when it began.
        config: The configuration.
        entries: The questions that it asked.
        settings: The present ones.
    """
    now = read_contents(connection, config, settings)
    moved = moved_parts(searched.contents, now.contents)
    notes = read_changes(
        connection,
        moved,
        tenant=settings.tenant,
        measured_at=searched.read_at,
        relevant=_relevant(entries),
    )
    evidence = judge_evidence(same_config=True, same_golden=True, moved=moved, notes=notes)
    return settled(
        searched.contents,
        now.contents,
        searched.rewritten(now),
        is_small=evidence.state is not EvidenceState.STALE,
    )


def _relevant(entries: Sequence[GoldenEntry]) -> set[UUID]:
    return {note for entry in entries for note in entry.relevant_note_ids}
