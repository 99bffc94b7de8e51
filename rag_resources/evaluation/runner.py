"""Runs the golden dataset through the pipeline. The metrics are computed in `core.evaluation`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import InvalidGoldenDatasetError, ModelMissingError
from rag_resources.core.evaluation import QueryOutcome, StoredEvaluation, Summary, summarize
from rag_resources.core.evidence import SearchSettings
from rag_resources.core.gate import GateConfig
from rag_resources.core.retrievers import VectorKind
from rag_resources.database.pool import Database
from rag_resources.evaluation.answering import Answering, evaluate_answers
from rag_resources.evaluation.asking import ask_in_full, time_questions
from rag_resources.evaluation.evidence import contents_measured
from rag_resources.evaluation.judging import Judging, judge_outcomes
from rag_resources.languages.messages import _
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.comparison import Questions, unstored_questions
from rag_resources.store.contents import count_contents, forget_contents, read_contents
from rag_resources.store.evaluations import (
    EvaluationContext,
    insert_evaluation,
    read_present,
    unstored_evaluation,
)
from rag_resources.store.golden import asked_golden, locate_places
from rag_resources.store.models import fetch_model, kinds_of


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A finished evaluation; `evaluation_id` is None if it was not stored."""

    evaluation_id: UUID | None
    summary: Summary
    outcomes: tuple[QueryOutcome, ...]
    context: EvaluationContext


def evaluate(
    database: Database,
    pipeline: RetrievalPipeline,
    configuration: str,
    config: RetrievalConfig,
    *,
    judging: Judging | None = None,
    answering: Answering | None = None,
    gate: GateConfig | None = None,
    run_id: str | None = None,
    store: bool = True,
    settings: SearchSettings | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Evaluation:
    """Run every golden question, one after another, and store the metrics.

    A question that fails counts as a miss and is stored with its error. One that could not be asked
    in full, twice, disturbs the evaluation: no gate uses it. Latencies are measured afterwards, in
    a pass of their own; then answers are generated and judged, and every question is asked once
    more with its relevant notes hidden.

    Args:
        database: Open.
        pipeline: Over that database.
        configuration: The name under which the evaluation is stored.
        config: The configuration to evaluate.
        judging: Who answers and judges; None judges nothing.
        answering: How answers are made, to evaluate their citations, and the answers given while
            the relevant notes are hidden; None evaluates retrieval only.
        gate: The criteria of the verdict; None uses the defaults.
        run_id: Dagster's run, if any.
        store: Whether to write `evaluation_results`.
        settings: The pipeline's settings; None is the defaults.
        progress: Called with 1 after each question of each pass, and after each judged answer.

    Raises:
        InvalidGoldenDatasetError: There are no golden questions.
        ModelMissingError: Nothing is indexed with the configuration's model, or it has no windows
            and the configuration searches them.
        DatabaseUnavailableError: The database was lost outside a retrieval.
    """
    settings = settings or SearchSettings()
    with database.transaction() as connection:
        count_contents(connection)
        searched = read_contents(connection, config, settings)
        entries = asked_golden(connection)
        places = locate_places(connection, entries)
        present = read_present(connection, entries)
        models = [config.model] if config.uses_vectors else []
        models += [config.score.model] if config.score else []
        unknown = next((each for each in models if fetch_model(connection, each) is None), None)
        lacks_windows = config.searches_windows and VectorKind.WINDOW not in kinds_of(
            connection, config.model
        )
    if not entries:
        raise InvalidGoldenDatasetError(
            _(
                "The set of questions is empty, so there is nothing to evaluate. Import one with "
                "“rag golden import FILE”."
            ),
            [],
        )
    if unknown is not None:
        raise ModelMissingError(
            _(
                "Nothing is indexed with the model “{model}”, or it was retired. Materialize the "
                "asset embeddings/{model} (if it does not exist, first add the model to "
                "EMBEDDING_MODELS and restart) or choose another configuration."
            ).format(model=unknown),
            model=unknown,
        )
    if lacks_windows:  # Every question would wait for its deadline, and nothing be concluded.
        raise ModelMissingError(
            _(
                "The model “{model}” does not have windows yet: “rag run” makes them, or "
                "materialize embeddings/{model} in the UI."
            ).format(model=config.model),
            model=config.model,
        )
    outcomes = ask_in_full(pipeline, config, entries, places=places, progress=progress)
    timings = time_questions(pipeline, config, entries, progress=progress)
    judgements = judge_outcomes(judging, outcomes, progress) if judging else None
    answers = None
    if answering is not None:
        hidden = ask_in_full(pipeline, config, entries, hides_relevant=True, progress=progress)
        with database.snapshot() as connection:
            answers = evaluate_answers(connection, outcomes, hidden, answering, judgements)
    summary = summarize(outcomes, judgements, answers=answers, gate=gate, timings=timings)
    context = EvaluationContext(
        configuration,
        config,
        golden_hash=present.golden_hash,
        model_digest=present.model_digests.get(config.model, ""),
        chunking_hashes=present.chunking_hashes,
        contents=searched.contents,
        measured_at=searched.read_at,
        run_id=run_id,
    )
    made = Evaluation(None, summary, tuple(outcomes), context)
    if not store:
        return made
    with database.transaction() as connection:
        count_contents(connection)
        contents = contents_measured(connection, searched, config, entries, settings=settings)
        context = replace(context, contents=contents)
        evaluation_id = insert_evaluation(connection, context, summary, outcomes)
        forget_contents(connection)
    return replace(made, evaluation_id=evaluation_id, context=context)


def as_stored(made: Evaluation) -> tuple[StoredEvaluation, Questions]:
    """Return an evaluation that is not stored, with its questions, in the form gates judge."""
    stored = unstored_evaluation(made.context, made.summary)
    return stored, unstored_questions(made.summary, made.outcomes)
