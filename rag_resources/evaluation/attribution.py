"""Asks questions again, with one change undone at a time: those lost, or with another citation.

Which changes are undone, and what follows from the answers, is in `core.counterfactuals`; tables of
the result are in `evaluation.comparison_tables`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from rag_resources.answers.answerers import ExtractiveAnswerer
from rag_resources.core.attribution import (
    ChangedAnswer,
    EvaluatedQuestion,
    Flip,
    changed_answers,
    first_citation,
    flips,
)
from rag_resources.core.configuration import RetrievalConfig, usable_retrieval
from rag_resources.core.counterfactuals import (
    Attribution,
    Counterfactual,
    Plan,
    Suspicion,
    find_causes,
    plan_counterfactuals,
)
from rag_resources.core.evaluation import QueryOutcome, StoredEvaluation
from rag_resources.core.filters import MAX_EXCLUDED, RetrievalFilters
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.messages import Message
from rag_resources.core.text import normalize_query
from rag_resources.database.pool import Connection, Database
from rag_resources.evaluation.answering import first_answer
from rag_resources.evaluation.asking import ask_in_full
from rag_resources.evaluation.summary import change_in_words
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.chunks import shadow_statistics
from rag_resources.store.comparison import (
    NoteName,
    evaluated_questions,
    name_notes,
    notes_since,
    statistics_since,
)
from rag_resources.store.versions import read_present
from rag_resources.store.windows import has_windows

Pair = Flip | ChangedAnswer
"""A question in both evaluations."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of two evaluations and of the database now.

    Attributes:
        before: The configuration of the first; None if it cannot be used any more.
        after: That of the second; None likewise.
        models: Those of the two that can still be used.
        windowed: Those of them with windows.
        changed: Notes that are new or changed since the first evaluation, by month; the relevant
            ones of lost questions are among them.
        suspects: See `find_causes`.
    """

    lost: Mapping[UUID, Pair]
    before: RetrievalConfig | None
    after: RetrievalConfig | None
    models: frozenset[str]
    windowed: frozenset[str]
    changed: Mapping[str, frozenset[UUID]]
    statistics_differ: bool
    suspects: Mapping[tuple[Suspicion, str], frozenset[UUID]]

    def plan(self) -> Plan | None:
        """Return how to ask the lost questions again; None if they cannot be asked."""
        if self.after is None or (self.after.uses_vectors and self.after.model not in self.models):
            return None
        relevant = {note for flip in self.lost.values() for note in _relevant(flip)}
        return plan_counterfactuals(
            self.before,
            self.after,
            models=self.models,
            windowed=self.windowed,
            golden_changed=any(map(_is_edited, self.lost.values())),
            new_notes={
                month: notes - relevant for month, notes in self.changed.items() if notes - relevant
            },
            statistics_differ=self.statistics_differ,
        )


def attribute_losses(
    database: Database,
    pipeline: RetrievalPipeline,
    before: StoredEvaluation,
    after: StoredEvaluation,
    *,
    worked: Collection[str] = (),
    told: Callable[[str], None] = lambda _: None,
) -> Attribution:
    """Find the causes of the questions that the second evaluation lost.

    One that it only lost among what a user gets comes back when a user gets it.

    Args:
        database: Open.
        pipeline: Over that database.
        before: Of the same or another configuration.
        after: Compared with it.
        worked: Months whose chunks or vectors were made between the two, as `YYYY-MM`.
        told: Called with a sentence before each way to ask.
    """
    with database.snapshot() as connection:
        questions = evaluated_questions(connection, [before.evaluation_id, after.evaluation_id])
        found = flips(questions[before.evaluation_id], questions[after.evaluation_id])
        lost = {flip.after.golden_id: flip for flip in found if flip.is_lost}
        notes = {key: frozenset(flip.after.relevant) for key, flip in lost.items()}
        facts = _read_facts(connection, pipeline, before, after, worked, lost, notes)

    def found_again(outcomes: Sequence[QueryOutcome]) -> set[UUID]:
        return {
            key
            for outcome in outcomes
            if (key := outcome.golden.golden_id)
            and (outcome.is_served if lost[key].is_served_only else outcome.is_hit)
        }

    return _attribute(database, pipeline, facts, found_again, told)


@dataclass(frozen=True, slots=True)
class AnswerAttribution:
    """The causes of changed first citations.

    Attributes:
        changed: The questions, the most important first.
        causes: As for lost questions; a change that brings the first citation back is its cause.
        notes: Names of the notes that they cite.
    """

    changed: tuple[ChangedAnswer, ...]
    causes: Attribution
    notes: Mapping[UUID, NoteName]


def attribute_answers(
    database: Database,
    pipeline: RetrievalPipeline,
    before: StoredEvaluation,
    after: StoredEvaluation,
    *,
    language: str = "es",
    question: str = "",
    worked: Collection[str] = (),
    told: Callable[[str], None] = lambda _: None,
) -> AnswerAttribution:
    """Find out why answers cite something else first in the second evaluation.

    Only extractive answers of the present version can be repeated; for others the answerer is
    named as a suspicion.

    Args:
        database: Open.
        pipeline: Over that database.
        before: Of the same or another configuration, with answers.
        after: Compared with it.
        language: Of the questions.
        question: Only questions that contain this, or whose golden id begins with it.
        worked: As for `attribute_losses`.
        told: As for `attribute_losses`.
    """
    with database.snapshot() as connection:
        questions = evaluated_questions(connection, [before.evaluation_id, after.evaluation_id])
        changed = [
            item
            for item in changed_answers(
                questions[before.evaluation_id], questions[after.evaluation_id]
            )
            if _is_meant(item.after, question)
        ]
        chosen = {item.after.golden_id: item for item in changed}
        cited = {key: _cited(item) for key, item in chosen.items()}
        names = name_notes(connection, sorted({note for own in cited.values() for note in own}))
        facts = _read_facts(connection, pipeline, before, after, worked, chosen, cited)
    answerers = {item.answers.answerer for item in (before, after) if item.answers}
    if answerers - {ExtractiveAnswerer(language).name}:
        suspects = {(Suspicion.ANSWERER, ""): frozenset(chosen), **facts.suspects}
        facts = replace(facts, suspects=suspects, after=None)

    def restored(outcomes: Sequence[QueryOutcome]) -> set[UUID]:
        return {
            key
            for outcome in outcomes
            if (key := outcome.golden.golden_id)
            and first_citation(first_answer(outcome, language))
            == first_citation(chosen[key].before.citations)
        }

    return AnswerAttribution(
        tuple(changed), _attribute(database, pipeline, facts, restored, told), names
    )


def _is_meant(question: EvaluatedQuestion, said: str) -> bool:
    wanted = normalize_query(said)
    return wanted in normalize_query(question.query) or str(question.golden_id).startswith(wanted)


def _cited(item: ChangedAnswer) -> frozenset[UUID]:
    """Return the notes that either answer cites first."""
    own = (*first_citation(item.before.citations), *first_citation(item.after.citations))
    return frozenset(cited.note_id for cited in own)


def _attribute(
    database: Database,
    pipeline: RetrievalPipeline,
    facts: _Facts,
    found_again: Callable[[Sequence[QueryOutcome]], set[UUID]],
    told: Callable[[str], None],
) -> Attribution:
    """Ask questions again in every way; `found_again` says which of them are as before."""
    plan = facts.plan() if facts.lost else None

    def ask(item: Counterfactual, queries: frozenset[UUID]) -> set[UUID]:
        told(
            Message.ATTRIBUTION_ASKING.format(
                change=change_in_words(item.undone, item.month, item.together, item.fields),
                count=len(queries),
            )
        )
        asked = [facts.lost[key] for key in facts.lost if key in queries]
        entries = [_entry(flip.before if item.golden else flip.after) for flip in asked]
        filters = RetrievalFilters(excluded_note_ids=tuple(sorted(item.hidden)))
        with _searching(database, pipeline, rebuilt=item.rebuilt) as own:
            return found_again(ask_in_full(own, item.config, entries, filters=filters))

    unasked = Plan(Counterfactual(None, RetrievalConfig()), (), (), None)
    return find_causes(
        list(facts.lost),
        plan or unasked,
        ask if plan else lambda *_: frozenset(),
        facts.suspects,
    )


@contextmanager
def _searching(
    database: Database, pipeline: RetrievalPipeline, *, rebuilt: bool
) -> Iterator[RetrievalPipeline]:
    """Yield the pipeline, or one that alone sees word statistics counted anew."""
    if not rebuilt:
        yield pipeline
        return
    with database.direct(shadow_statistics) as own:
        yield pipeline.over(own)


def _entry(question: EvaluatedQuestion) -> GoldenEntry:
    return GoldenEntry(
        question.query, question.relevant, "", question.category, 1, golden_id=question.golden_id
    )


def _relevant(flip: Pair) -> set[UUID]:
    return {*flip.before.relevant, *flip.after.relevant}


def _is_edited(flip: Pair) -> bool:
    before, after = flip.before, flip.after
    return before.query != after.query or set(before.relevant) != set(after.relevant)


def _read_facts(
    connection: Connection,
    pipeline: RetrievalPipeline,
    before: StoredEvaluation,
    after: StoredEvaluation,
    worked: Collection[str],
    lost: Mapping[UUID, Pair],
    notes: Mapping[UUID, frozenset[UUID]],
) -> _Facts:
    """Read what may have changed since the first evaluation.

    Args:
        connection: In a snapshot.
        pipeline: As for `attribute_losses`.
        before: An evaluation.
        after: The one compared with it.
        worked: Months that were indexed between the two.
        lost: The questions, by golden id.
        notes: For each question, the notes whose change would matter.
    """
    changed = notes_since(connection, before.created_at, limit=MAX_EXCLUDED + 1)
    is_hidden = sum(map(len, changed.values())) <= MAX_EXCLUDED
    statistics = statistics_since(connection, before.created_at)
    registered = read_present(connection).model_digests.keys()
    wanted = {before.model, after.model}
    models = frozenset(name for name in wanted & registered if pipeline.has_model(name))
    configs = (
        usable_retrieval(before.config, origin=before.configuration),
        usable_retrieval(after.config, origin=after.configuration),
    )
    everything = frozenset(lost)
    doubts = {
        Suspicion.CONFIGURATION: None in configs,
        Suspicion.MODEL_GONE: wanted != models,
        Suspicion.MODEL_REBUILT: before.model == after.model
        and before.model_digest != after.model_digest,
        Suspicion.CHUNKING: before.chunking_hashes != after.chunking_hashes,
        Suspicion.STATISTICS_REBUILT: statistics.rebuilt,
        Suspicion.MANY_NOTES: not is_hidden,
    }
    return _Facts(
        lost,
        *configs,
        models,
        frozenset(name for name in models if has_windows(connection, name)),
        changed if is_hidden else {},
        statistics.differ,
        {
            **{(doubt, ""): everything for doubt, is_so in doubts.items() if is_so},
            **_doubts_of_notes(connection, notes, changed, worked),
        },
    )


def _doubts_of_notes(
    connection: Connection,
    own_notes: Mapping[UUID, frozenset[UUID]],
    changed: Mapping[str, frozenset[UUID]],
    worked: Collection[str],
) -> dict[tuple[Suspicion, str], frozenset[UUID]]:
    """Return what happened to the notes of questions."""
    notes = name_notes(connection, sorted({note for own in own_notes.values() for note in own}))
    new = {note for own in changed.values() for note in own}

    def where(applies: Callable[[UUID], bool]) -> frozenset[UUID]:
        return frozenset(key for key, own in own_notes.items() if any(map(applies, own)))

    return {
        (Suspicion.NOTE_GONE, ""): where(lambda note: note not in notes),
        (Suspicion.NOTE_CHANGED, ""): where(new.__contains__),
        **{
            (Suspicion.MONTH_WORKED_ON, month): where(
                lambda note, month=month: note in notes and notes[note].month == month  # type: ignore[misc]
            )
            for month in sorted(worked)
        },
    }
