"""Calibrates how sure responses are: asks questions whose answers are known, and stores the result.

Fitting and measuring are in `core.calibration`; what a calibration says of a response is in
`core.confidence`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from rag_resources.core.calibration import Calibrated, calibrate
from rag_resources.core.confidence import Calibration
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import DisturbedEvaluationError, InvalidGoldenDatasetError
from rag_resources.core.evidence import (
    UNCOUNTED,
    Contents,
    SearchSettings,
    judge_evidence,
    moved_parts,
)
from rag_resources.core.golden import GoldenEntry
from rag_resources.database.pool import Connection, Database
from rag_resources.database.queries import queries
from rag_resources.evaluation.answering import asked_question, hidden_question, told_from
from rag_resources.evaluation.asking import ask_in_full, golden_questions
from rag_resources.languages.messages import Text, _
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.contents import count_contents, read_changes, read_contents
from rag_resources.store.golden import locate_places


@dataclass(frozen=True, slots=True)
class StoredCalibration:
    """A calibration, and what was searched when it was measured.

    Attributes:
        contents: Fingerprints, as an evaluation records them.
        measured_at: When it began, by the database's clock.
    """

    calibration: Calibration
    contents: Contents
    measured_at: datetime


def write_calibration(connection: Connection, config_hash: str, made: StoredCalibration) -> None:
    """Store the calibration of a configuration in place of an earlier one."""
    queries().write_calibration(
        connection,
        config_hash=config_hash,
        calibration=Jsonb(made.calibration.model_dump(mode="json")),
        contents=Jsonb(made.contents),
        measured_at=made.measured_at,
    )


def delete_calibration(connection: Connection, config_hash: str) -> None:
    """Delete the calibration of a configuration, if it has one."""
    queries().delete_calibration(connection, config_hash=config_hash)


def fetch_calibration(connection: Connection, config_hash: str) -> StoredCalibration | None:
    """Return the calibration of a configuration; None if it has none."""
    row = queries().fetch_calibration(connection, config_hash=config_hash)
    if row is None:
        return None
    return StoredCalibration(
        Calibration.model_validate(row.calibration), row.contents, row.measured_at
    )


@dataclass(frozen=True, slots=True)
class PresentCalibration:
    """The calibration that is valid for what is searched now.

    Attributes:
        missing: Why there is none, in Spanish; None if there is one.
    """

    calibration: Calibration | None
    missing: Text | None = None


def train_calibration(
    database: Database,
    pipeline: RetrievalPipeline,
    config: RetrievalConfig,
    *,
    unanswerable: Sequence[GoldenEntry] = (),
    tag: str | None = None,
    language: str = "es",
    settings: SearchSettings | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Calibrated:
    """Calibrate a configuration: ask the golden questions with and without their notes.

    The stored result says how often its responses and answers are right, and when it is better
    to withhold an answer.

    If the signals tell nothing, an earlier calibration of the configuration is deleted.

    Args:
        database: Open.
        pipeline: Over that database.
        config: The configuration.
        unanswerable: Questions that no note answers.
        tag: Only golden questions with this tag; None takes all.
        language: Of the questions.
        settings: The pipeline's settings; None is the defaults.
        progress: Called with 1 after each of the `calibration_steps`.

    Raises:
        InvalidGoldenDatasetError: There are no golden questions.
        DisturbedEvaluationError: A question could not be asked in full.
    """
    entries = golden_questions(database, tag)
    if not entries:
        raise InvalidGoldenDatasetError(
            _(
                "The set of questions is empty, so there is nothing to evaluate. Import one with "
                "“rag golden import FILE”."
            ),
            [],
        )
    with database.transaction() as connection:
        count_contents(connection)
        searched = read_contents(connection, config, settings or SearchSettings())
        places = locate_places(connection, entries)
    asked = [*entries, *unanswerable]
    outcomes = ask_in_full(pipeline, config, asked, places=places, progress=progress)
    hidden = ask_in_full(pipeline, config, entries, hides_relevant=True, progress=progress)
    lost = sum(bool(outcome.degraded) for outcome in (*outcomes, *hidden))
    if lost:
        raise DisturbedEvaluationError(
            _(
                "the evaluation was disturbed: questions that lacked a stage, also when repeated: "
                "{count}; it decides nothing. If windows or vectors of its model are missing, "
                "“rag run” makes them; otherwise evaluate again"
            ).format(count=lost)
        )
    found = calibrate(
        [
            *(asked_question(outcome, language) for outcome in outcomes),
            *(hidden_question(outcome, language) for outcome in hidden),
        ],
        answerer=told_from(language),
    )
    with database.transaction() as connection:
        if found.calibration.claims:
            made = StoredCalibration(found.calibration, searched.contents, searched.read_at)
            write_calibration(connection, config.config_hash, made)
        else:
            delete_calibration(connection, config.config_hash)
    return found


def calibration_steps(questions: int, unanswerable: int) -> int:
    """Return how many times `train_calibration` reports progress."""
    return 2 * questions + unanswerable


def read_calibration(
    connection: Connection,
    config: RetrievalConfig,
    *,
    settings: SearchSettings,
) -> PresentCalibration:
    """Return a configuration's calibration if it is valid for what is searched now.

    The rule is that of evaluations (`core.evidence`): a small share of the notes may have changed.
    Changes that nobody has counted yet do not count.

    Args:
        connection: Any.
        config: The configuration.
        settings: The settings that searches use.
    """
    stored = fetch_calibration(connection, config.config_hash)
    if stored is None:
        return PresentCalibration(
            None,
            _(
                "“rag calibrate” is missing, which takes 20 questions that succeed and 20 that fail"
            ).format(),
        )
    present = read_contents(connection, config, settings).contents
    moved = [item for item in moved_parts(stored.contents, present) if item.part != UNCOUNTED]
    evidence = judge_evidence(
        same_config=True,
        same_golden=True,
        moved=moved,
        notes=read_changes(
            connection,
            moved,
            tenant=settings.tenant,
            measured_at=stored.measured_at,
            relevant=(),
        ),
    )
    if evidence.is_stale:
        return PresentCalibration(
            None,
            _(
                "the notes or the model have changed since it was measured (“rag calibrate” "
                "repeats it)"
            ).format(),
        )
    return PresentCalibration(stored.calibration)
