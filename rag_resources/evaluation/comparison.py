"""Compares stored evaluations: which is better, which questions flipped, what changed.

The statistics are in `core.comparison`, flips and changes in `core.attribution`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from rag_resources.core.attribution import (
    Attribution,
    ConfigChange,
    Flip,
    config_changes,
    flips,
)
from rag_resources.core.comparison import (
    HITS,
    Comparison,
    HitChanges,
    NonInferiority,
    QueryMetrics,
    compare,
    hit_changes,
)
from rag_resources.core.configuration import RetrievalConfig, usable_retrieval
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import moved_in_words, moved_parts
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.metrics import SERVED
from rag_resources.database.pool import Connection, Database
from rag_resources.evaluation.asking import ask_in_full
from rag_resources.languages.messages import _, joined
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.comparison import (
    Questions,
    evaluated_questions,
    find_evaluations,
    name_notes,
)
from rag_resources.store.evaluations import read_present
from rag_resources.store.models import kinds_of
from rag_resources.store.promotions import evaluation_of_serving

MAX_QUESTIONS = 50
"""Most lost questions that are asked again."""


@dataclass(frozen=True)
class EvaluationComparison:
    """Two stored evaluations, the second against the first.

    Attributes:
        first: The questions of the first that both asked with the same relevant notes.
        second: The same questions of the second.
        left_out: Number of the others.
        flips: The questions that only one of them found.
        notes: The notes that flips mention, if they still exist.
    """

    before: StoredEvaluation
    after: StoredEvaluation
    first: Questions
    second: Questions
    left_out: int
    flips: tuple[Flip, ...]
    notes: Mapping[UUID, str]

    @cached_property
    def comparison(self) -> Comparison:
        """The metrics of what was retrieved."""
        return compare(query_metrics(self.first), query_metrics(self.second))

    @cached_property
    def answers(self) -> Comparison | None:
        """The metrics of the answers; None if both answered no question with the same places."""
        same = {key for key, own in self.first.items() if own.places == self.second[key].places}
        first, second = (
            {key: own for key in same if (own := asked[key].answer_metrics) is not None}
            for asked in (self.first, self.second)
        )
        return compare(first, second) if first.keys() & second.keys() else None

    @property
    def changes(self) -> list[ConfigChange]:
        """What differs in the configuration and in the data of the two."""
        before, after = self.before, self.after
        changes = [
            *config_changes(before.config, after.config),
            *config_changes(_circumstances(before), _circumstances(after)),
        ]
        moved = _moved_between(before, after)
        return [*changes, ConfigChange(_("data"), None, moved)] if moved else changes

    def inferiorities(self, margin: float) -> dict[str, NonInferiority]:
        """Judge both hit rates, by metric; see `judge_inferiority`."""
        return {metric: self.hits(metric).inferiority(margin) for metric in (HITS, SERVED)}

    def hits(self, metric: str) -> HitChanges:
        """Count hits lost and gained."""
        return hit_changes(query_metrics(self.first), query_metrics(self.second), metric)


def compare_by_name(connection: Connection, before: str, after: str) -> EvaluationComparison:
    """Compare two evaluations by name; see `compare_evaluations`.

    Args:
        connection: In a snapshot.
        before: The name of a configuration (its newest evaluation), or a prefix of an
            evaluation's id.
        after: Likewise.

    Raises:
        InvalidParameterError: A name matches no evaluation, or several.
    """
    return compare_evaluations(
        connection, named_evaluation(connection, before), named_evaluation(connection, after)
    )


def compare_evaluations(
    connection: Connection,
    before: StoredEvaluation,
    after: StoredEvaluation,
    *,
    asked: Questions | None = None,
) -> EvaluationComparison:
    """Compare two evaluations on the questions that both asked.

    Args:
        connection: In a snapshot.
        before: An evaluation.
        after: Another one.
        asked: The questions of the second one if it is not stored.

    Raises:
        InvalidParameterError: They share no question, or one was disturbed.
    """
    ids = (before.evaluation_id, after.evaluation_id)
    questions: dict[UUID, Questions] = dict(evaluated_questions(connection, ids))
    if asked is not None:
        questions[after.evaluation_id] = asked
    for evaluation in (before, after):
        if evaluation.is_disturbed:
            reason = _(
                "the evaluation was disturbed: questions that lacked a stage, also when repeated: "
                "{count}; it decides nothing. If windows or vectors of its model are missing, "
                "“rag run” makes them; otherwise evaluate again"
            ).format(count=evaluation.degraded_queries)
            raise InvalidParameterError(
                _("The evaluation {evaluation_id} is not compared: {reason}.").format(
                    evaluation_id=evaluation.evaluation_id, reason=reason
                )
            )
    first, second = (questions[key] for key in ids)
    common = {
        key
        for key in first.keys() & second.keys()
        if set(first[key].relevant) == set(second[key].relevant)
    }
    if not common:
        raise InvalidParameterError(_("There is no common question to compare."))
    left_out = len(first.keys() | second.keys()) - len(common)
    first, second = ({key: asked[key] for key in common} for asked in (first, second))
    found = tuple(flips(first, second))
    mentioned = {note for flip in found for note in (*flip.after.relevant, *flip.after.retrieved)}
    notes = name_notes(connection, sorted(mentioned))
    return EvaluationComparison(before, after, first, second, left_out, found, notes)


def compare_with_serving(
    connection: Connection, evaluation: StoredEvaluation, asked: Questions | None = None
) -> EvaluationComparison | None:
    """Compare an evaluation with that of the serving configuration; see `evaluation_of_serving`.

    Only the questions that both share are compared.

    Args:
        connection: In a snapshot.
        evaluation: The one to compare.
        asked: Its questions if it is not stored.

    Returns:
        None if what serves was never evaluated, or this is that evaluation, or the two share no
        question, or this one was disturbed.
    """
    serving = evaluation_of_serving(connection, compared_hash=evaluation.config_hash)
    if serving is None or serving.evaluation_id == evaluation.evaluation_id:
        return None
    try:
        return compare_evaluations(connection, serving, evaluation, asked=asked)
    except InvalidParameterError:
        return None


def query_metrics(questions: Questions) -> QueryMetrics:
    """Return every metric of every question."""
    return {key: question.metrics for key, question in questions.items()}


def named_evaluation(connection: Connection, name: str) -> StoredEvaluation:
    """Return the evaluation that a name means; see `compare_by_name`.

    Raises:
        InvalidParameterError: It matches no evaluation, or several.
    """
    found = find_evaluations(connection, name)
    if not found:
        raise InvalidParameterError(
            _(
                "There is no evaluation of “{name}”. “rag evaluate NAME” evaluates a "
                "configuration; give the name of an evaluated one or the beginning of an "
                "evaluation's identifier (at least 6 characters)."
            ).format(name=name),
            name=name,
        )
    if len(found) > 1:
        raise InvalidParameterError(
            _(
                "Several evaluations have an identifier that begins with “{name}”: write more "
                "characters."
            ).format(name=name),
            name=name,
        )
    return found[0]


def _circumstances(evaluation: StoredEvaluation) -> Mapping[str, object]:
    return {
        _("digest of the model"): evaluation.model_digest,
        _("set of questions"): evaluation.golden_hash,
        _("way of chunking"): ", ".join(evaluation.chunking_hashes),
    }


def _moved_between(before: StoredEvaluation, after: StoredEvaluation) -> str:
    """Say which months' parts that both searched were made anew between the two."""
    shared = set.intersection(
        *(
            {part for parts in contents.values() for part in parts}
            for contents in (before.contents, after.contents)
        )
    )
    moved = [each for each in moved_parts(before.contents, after.contents) if each.part in shared]
    return joined("; ", moved_in_words(moved))


def attribute_losses(
    database: Database, pipeline: RetrievalPipeline, found: EvaluationComparison
) -> Attribution:
    """Ask lost questions again under the former configuration.

    This tells what the configuration lost from what changed data lost.

    Args:
        database: Open.
        pipeline: Over that database.
        found: The comparison; at most `MAX_QUESTIONS` are asked, those ranked best before first.
    """
    lost = {flip.after.golden_id: flip for flip in found.flips if flip.is_lost}
    if not lost or found.before.config_hash == found.after.config_hash:
        return Attribution(len(lost), by_data=frozenset(lost))
    former = usable_retrieval(found.before.config, origin=found.before.configuration)
    obstacle = _obstacle(database, pipeline, former)
    if former is None or obstacle:
        return Attribution(len(lost), obstacle=obstacle)
    asked = [flip.after for flip in lost.values()][:MAX_QUESTIONS]
    entries = [
        GoldenEntry(each.query, each.relevant, "", each.category, 1, golden_id=each.golden_id)
        for each in asked
    ]
    again = {
        key
        for outcome in ask_in_full(pipeline, former, entries)
        if (key := outcome.golden.golden_id)
        and (outcome.is_served if lost[key].is_served_only else outcome.is_hit)
    }
    missed = {each.golden_id for each in asked} - again
    return Attribution(len(lost), frozenset(again), frozenset(missed))


def _obstacle(
    database: Database, pipeline: RetrievalPipeline, former: RetrievalConfig | None
) -> str | None:
    """Say why a former configuration cannot be asked now; None if it can."""
    if former is None:
        return _("a stored configuration is no longer valid")
    if not former.needs_vectors:
        return None
    with database.transaction() as connection:
        is_there = former.model in read_present(connection).model_digests and (
            former.vector_kinds <= kinds_of(connection, former.model)
        )
    return None if is_there and pipeline.has_model(former.model) else _("a model is gone")
