"""Decides whether an evaluation is current, aged or stale: whether it still describes the present.

An evaluation records fingerprints of what its configuration searches, by month and part.
`store.contents` reads the present ones; `evaluation.evidence` brings both together.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rag_resources.core.configuration import RetrievalConfig, canonical_hash
from rag_resources.core.durations import listed, months_in_words
from rag_resources.core.retrievers import VectorKind
from rag_resources.languages.messages import Text, _, joined

Contents = Mapping[str, Mapping[str, str]]
"""Fingerprints by month (`YYYY-MM-01`, or `NO_MONTH`) and part."""

NO_MONTH = "-infinity"
"""The month of parts that belong to none: word statistics, models, settings."""

UNSETTLED = "unsettled"
"""Recorded for a part that was written to during the evaluation: its measured state is unknown."""

WRITTEN_TO = "~"
"""Prefix of the recorded fingerprint of a part that changed little during the evaluation."""

UNCOUNTED = "uncounted"
"""The part of a month that was written to since the last count."""

MOST_CHANGED_NOTES = 0.02
"""Largest share of notes, none relevant to a golden question, that ages an evaluation only."""
_WORDS = {
    "notes": _("notes"),
    "chunks": _("chunks"),
    "chunk": _("vectors"),
    "contextual": _("vectors"),
    "window": _("windows"),
    "note": _("vectors of whole notes"),
    "mentions": _("mentions"),
    "statements": _("causes"),
    "words": _("the word statistics"),
    "model": _("the model"),
    **{f"{kind}_index": _("the index of the vectors") for kind in VectorKind},
    "settings": _("the settings (TENANT, NOTE_EMBEDDING_MODEL, LLM_MODEL)"),
    UNCOUNTED: _("notes that are being written"),
}
_ORDER = {kind: at for at, kind in enumerate(_WORDS)}
_INDEXES = {f"{kind}_index" for kind in VectorKind}
_OF_NO_NOTE = {"words", "model", "settings", UNCOUNTED, *_INDEXES}


class EvidenceState(StrEnum):
    """Whether an evaluation still describes what is searched now."""

    CURRENT = "current"
    AGED = "aged"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """The settings outside a configuration that change what it finds.

    Attributes:
        tenant: The tenant whose notes are searched.
        language_model: Empty if there is none.
    """

    tenant: str = "default"
    language_model: str = ""

    @property
    def fingerprint(self) -> str:
        """A hash of all these settings."""
        return canonical_hash([self.tenant, self.language_model])


@dataclass(frozen=True, slots=True)
class Moved:
    """A part of a month that has changed; None means that there was, or is, nothing."""

    month: str
    part: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ChangedNotes:
    """How many notes the moved parts concern.

    Attributes:
        notes: All notes.
        changed: Notes that changed, came, went or expired.
        relevant: Those of them that golden questions name as relevant.
        expired: Those that expired, or would be visible again by the database's clock.
        is_known: Whether all moved parts could be compared note by note.
    """

    notes: int = 0
    changed: int = 0
    relevant: int = 0
    expired: int = 0
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """The state of an evaluation, and why it is not current."""

    state: EvidenceState
    reasons: tuple[Text, ...] = ()

    @property
    def is_current(self) -> bool:
        """Whether nothing that the evaluation used has changed."""
        return self.state is EvidenceState.CURRENT

    @property
    def is_stale(self) -> bool:
        """Whether it no longer describes what is searched."""
        return self.state is EvidenceState.STALE

    @property
    def explanation(self) -> Text:
        """The reasons in one line, in Spanish; empty if it is current."""
        return joined("; ", self.reasons)


def searched_parts(config: RetrievalConfig) -> tuple[str, ...]:
    """Return the parts of a month that a configuration searches, as `month_contents` names them."""
    parts = ["notes"]
    if config.unit == "chunks":
        parts += ["chunks", "words"]
    if config.uses_vectors:
        kinds = [own for kind in sorted(config.vector_kinds) for own in (kind, f"{kind}_index")]
        parts += [f"{kind}/{config.model}" for kind in (*kinds, "model")]
    if config.searches_graph:
        parts += ["mentions", "statements"]
    return tuple(parts)


def settled(
    before: Contents, after: Contents, rewritten: Collection[tuple[str, str]], *, is_small: bool
) -> Contents:
    """Return the contents that an evaluation records: those at its start, with changes marked.

    Args:
        before: At its start.
        after: At its end.
        rewritten: Months and parts that were written to between.
        is_small: Whether all differences between the two are small enough for aged evidence.
    """
    first, last = _flat(before), _flat(after)
    found: dict[str, dict[str, str]] = {}
    for month, part in first.keys() | last.keys():
        fingerprint = first.get((month, part), "")
        if fingerprint != last.get((month, part), ""):
            fingerprint = WRITTEN_TO + fingerprint if is_small else UNSETTLED
        elif (month, part) in rewritten:
            fingerprint = UNSETTLED
        found.setdefault(month, {})[part] = fingerprint
    return found


def moved_parts(recorded: Contents, present: Contents) -> list[Moved]:
    """Return the months and parts that differ between two readings."""
    before, after = _flat(recorded), _flat(present)
    return [
        Moved(*key, before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _flat(contents: Contents) -> dict[tuple[str, str], str]:
    return {
        (month, part): fingerprint
        for month, parts in contents.items()
        for part, fingerprint in parts.items()
    }


def judge_evidence(
    *,
    same_config: bool,
    same_golden: bool,
    moved: Sequence[Moved],
    notes: ChangedNotes,
) -> Evidence:
    """Decide whether an evaluation is current, aged or stale. Property 57.

    It is aged if only notes changed, at most a share of `MOST_CHANGED_NOTES` of all, none of them
    relevant to a golden question.

    Args:
        same_config: Whether the configuration is the one that was evaluated.
        same_golden: Whether the golden questions are those that were asked.
        moved: The parts it searched that have changed.
        notes: The notes in the moved parts.
    """
    changed = (
        []
        if same_config
        else [_("the configuration has changed since its last evaluation").format()]
    )
    if not same_golden:
        changed.append(_("the set of questions has changed since its last evaluation").format())
    found = [*changed, *moved_in_words(moved)]
    if notes.expired:
        found.append(_("notes expired since then: {count}").format(count=notes.expired))
    if not found:
        return Evidence(EvidenceState.CURRENT)
    by_note = notes.is_known and not any(_kind(item) in _OF_NO_NOTE for item in moved)
    if by_note and notes.changed:
        found.append(
            _(
                "notes changed: {changed} of {notes}, of which relevant to the questions: "
                "{relevant}"
            ).format(changed=notes.changed, notes=notes.notes, relevant=notes.relevant)
        )
    is_small = by_note and notes.relevant == 0 and notes.changed <= MOST_CHANGED_NOTES * notes.notes
    state = EvidenceState.AGED if is_small and not changed else EvidenceState.STALE
    return Evidence(state, tuple(found))


def _kind(item: Moved) -> str:
    return item.part.partition("/")[0]


def moved_in_words(moved: Iterable[Moved]) -> list[Text]:
    """Say in one sentence which parts moved, and in which months; none if nothing did."""
    months: dict[str, set[str]] = {}
    for item in sorted(moved, key=lambda each: _ORDER[_kind(each)]):
        months.setdefault(_WORDS[_kind(item)], set()).update({item.month} - {NO_MONTH})
    parts = [
        joined("", (word, " (", months_in_words(sorted(own, reverse=True)), ")")) if own else word
        for word, own in months.items()
    ]
    return [_("changed: {parts}").format(parts=listed(parts))] if parts else []
