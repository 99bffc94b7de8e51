"""The jobs: those that materialise assets, and those that answer a question or obey an order."""

from contextlib import closing
from functools import partial
from typing import Any

import dagster as dg

from rag_assets.keys import (
    ALL_EMBEDDINGS,
    ALL_EVALUATIONS,
    CHUNKS,
    DOCUMENT_PAGES,
    DOCUMENTS,
    EMBEDDINGS,
    EVALUATION_REPORT,
    GOLDEN_DATASET,
    GRAPH,
    MIGRATION_STATUS,
    NOTE_EMBEDDINGS,
    NOTES,
    PROMOTED_CONFIG,
)
from rag_assets.launchpad import (
    AskConfig,
    CompareConfig,
    ImmediateConfig,
    PartialConfig,
    PromoteTenantConfig,
    PromotionRollbackConfig,
    ReasonConfig,
    RetireConfig,
    RetrieveConfig,
)
from rag_assets.metadata import comparison_metadata, labelled
from rag_assets.passages import answer_metadata, response_metadata
from rag_assets.runs.failures import told_as_failure
from rag_resources.application.answers import Asked
from rag_resources.configurations import BASELINE_CONFIGURATION
from rag_resources.core.citations import AnswerSentence
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.filters import parse_filters
from rag_resources.core.query import check_language
from rag_resources.core.retrievers import VectorKind
from rag_resources.evaluation.summary import evidence_in_words, inferiority_in_words
from rag_resources.languages.messages import _, readers, render
from rag_resources.resources import RagResource
from rag_resources.store.progress import Progress

ingest_job = dg.define_asset_job(
    "ingest",
    selection=dg.AssetSelection.assets(DOCUMENTS, DOCUMENT_PAGES, NOTES, NOTE_EMBEDDINGS),
    description=_(
        "The notes of the source (NOTES_SOURCE), by month of creation. What has not changed is "
        "untouched; what cannot be read is named and counted."
    ),
)


index_job = dg.define_asset_job(
    "index",
    selection=dg.AssetSelection.assets(CHUNKS, *GRAPH) | ALL_EMBEDDINGS,
    description=_("Chunks and embeds the notes of the chosen months."),
)


golden_job = dg.define_asset_job(
    "golden",
    selection=dg.AssetSelection.assets(GOLDEN_DATASET),
    description=_("Questions with their relevant notes: the yardstick for each configuration."),
)


migration_progress_job = dg.define_asset_job(
    "migration_progress",
    selection=dg.AssetSelection.assets(MIGRATION_STATUS),
    description=_(
        "How much is migrated, with which quality, and what is left. It is materialised with each "
        "“rag run” and after each batch, so its numbers are plotted along the migration."
    ),
)


evaluate_job = dg.define_asset_job(
    "evaluate",
    selection=dg.AssetSelection.assets(EVALUATION_REPORT) | ALL_EVALUATIONS,
    description=_("Evaluates all configurations and compares them."),
)


promote_job = dg.define_asset_job(
    "promote",
    selection=dg.AssetSelection.assets(PROMOTED_CONFIG),
    description=_("Lets a configuration serve that passes the gate."),
)


EXAMPLE_QUESTION = _("¿qué pasó con la insulina durante el apagón?")
"""Of the sample: the launchpads of `retrieve` and `ask` open with it."""


def _job_of(name: str, op: dg.OpDefinition, **example: str) -> dg.JobDefinition:
    """Return the job that executes one op.

    Args:
        name: Of the job.
        op: What it does, which is also its description.
        example: The fields with which its launchpad opens; the others keep their defaults.
    """
    graph = dg.GraphDefinition(name=name, node_defs=[op], description=op.description)
    return graph.to_job(config={"ops": {op.name: {"config": example}}} if example else None)


@dg.op(description=_("Searches the passages that answer a question."))
def retrieve_passages(
    context: dg.OpExecutionContext, config: RetrieveConfig, rag: RagResource
) -> None:
    """Answer one question and show its passages as a table in the run."""
    strategy = {"strategy": config.strategy} if config.strategy else {}
    language = config.language or rag.settings.answer_language
    reader = readers(config.language, rag.settings.answer_language)
    with told_as_failure(reader):
        check_language(language)
        answered = rag.application.retrieve(
            config.question,
            configuration=config.configuration or None,
            overrides={**config.overrides, **strategy},
            top_k=config.top_k or None,
            filters=parse_filters(config.filters),
            language=language,
        )
    told = partial(render, language=reader)
    response = answered.response.reworded(told)
    count, latency_ms = len(response.results), response.latency_ms
    context.log.info(
        told(
            _("Passages: {count}, in {latency_ms:.0f} ms").format(
                count=count, latency_ms=latency_ms
            )
        )
    )
    for message in response.messages:
        context.log.warning(message)
    metadata = response_metadata(response, told(answered.configuration), reader)
    if response.error:
        raise dg.Failure(response.error, metadata=metadata, allow_retries=False)
    context.add_output_metadata(metadata)


retrieve_job = _job_of("retrieve", retrieve_passages, question=EXAMPLE_QUESTION)


@dg.op(description=_("Answers a question with sentences of your notes, each with its citation."))
def answer_question(context: dg.OpExecutionContext, config: AskConfig, rag: RagResource) -> None:
    """Answer one question; each sentence is in the log as soon as it is checked."""
    strategy = {"strategy": config.strategy} if config.strategy else {}
    language = config.language or rag.settings.answer_language
    reader = readers(config.language, rag.settings.answer_language)
    told = partial(render, language=reader)
    asked: Asked | None = None
    with told_as_failure(reader):
        check_language(language)
        events = rag.application.answers.stream(
            config.question,
            configuration=config.configuration or None,
            overrides={**config.overrides, **strategy},
            top_k=config.top_k or None,
            filters=parse_filters(config.filters),
            language=language,
            conversation=config.conversation,
            ignored=config.ignored,
        )
        with closing(events):
            for event in events:
                if isinstance(event, AnswerSentence):
                    context.log.info(event.text)
                else:
                    asked = event.reworded(told)
    assert asked is not None
    for message in asked.retrieval.response.messages:
        context.log.warning(message)
    metadata = answer_metadata(asked, reader)
    if asked.error:
        raise dg.Failure(asked.error, metadata=metadata, allow_retries=False)
    context.add_output_metadata(metadata)


ask_job = _job_of("ask", answer_question, question=EXAMPLE_QUESTION)


@dg.op(description=_("Compares two evaluations question by question."))
def compare_evaluations(
    context: dg.OpExecutionContext, config: CompareConfig, rag: RagResource
) -> None:
    """Compare the second evaluation with the first, and name the causes of lost questions."""
    with told_as_failure():
        found, judged = rag.evaluations.compare(config.before, config.after)
    evidence = rag.evaluations.evidence([found.before, found.after])
    verdict = " ".join(inferiority_in_words(item, metric) for metric, item in judged.items())
    context.log.info(verdict)
    context.add_output_metadata(
        labelled(
            {
                "before": f"{found.before.configuration} ({found.before.evaluation_id})",
                "after": f"{found.after.configuration} ({found.after.evaluation_id})",
                "before_evidence": evidence_in_words(evidence[found.before.evaluation_id]),
                "after_evidence": evidence_in_words(evidence[found.after.evaluation_id]),
                "verdict": verdict,
                **comparison_metadata(rag.evaluations, found),
            }
        )
    )


compare_job = _job_of("compare", compare_evaluations, before="baseline", after="hybrid_weighted")


@dg.op(
    description=_(
        "Undoes the migration: “baseline”, which searches whole notes, serves again, all chunks "
        "with their vectors are deleted, and nothing more is chunked. The notes are untouched."
    )
)
def drop_migration(
    context: dg.OpExecutionContext, config: ImmediateConfig, rag: RagResource
) -> None:
    """Serve whole notes and delete all chunks."""
    with told_as_failure():
        before = rag.migration.progress()
        consequence = _(
            "“{configuration}” would serve, and chunks would be deleted: {chunks}, of {notes} "
            "notes."
        ).format(chunks=before.chunks, notes=before.chunked, configuration=BASELINE_CONFIGURATION)
        _check_confirmed(config.confirm, _("delete"), consequence)
        changed = rag.serving.roll_back_to_notes(
            rag.application.configuration(BASELINE_CONFIGURATION),
            reason=config.given_reason(),
            run_id=context.run_id,
            accept_missing=config.accepted(),
        )
    if changed:
        # Dagster forgets that the months were made: a backfill of what is missing selects them.
        context.instance.wipe_assets(
            [CHUNKS, *GRAPH, *context.instance.get_asset_keys(prefix=[EMBEDDINGS])]
        )
    context.add_output_metadata(
        labelled({**_counts(before, "before"), **_state(rag), "changed": changed})
    )


@dg.op(
    description=_(
        "Stops the migration where it is: what is migrated goes on serving, and the other notes "
        "are found whole."
    )
)
def stop_migration(context: dg.OpExecutionContext, config: PartialConfig, rag: RagResource) -> None:
    """Keep what is migrated, and let no further batch start."""
    with told_as_failure():
        before = rag.migration.progress()
        consequence = _("The migration would stop with {chunked} of {notes} notes chunked.").format(
            chunked=before.chunked, notes=before.notes
        )
        _check_confirmed(config.confirm, _("stop"), consequence)
        changed = rag.migration.stop(reason=config.given_reason(), run_id=context.run_id)
    context.add_output_metadata(
        labelled({**_counts(before, "before"), **_state(rag), "changed": changed})
    )


@dg.op(description=_("Goes back to the configuration that served before."))
def withdraw_promotion(
    context: dg.OpExecutionContext, config: PromotionRollbackConfig, rag: RagResource
) -> None:
    """Let the previous configuration serve again."""
    with told_as_failure():
        outcome = rag.serving.withdraw(
            config.withdraw.strip(), reason=config.given_reason(), run_id=context.run_id
        )
    (context.log.info if outcome.changed else context.log.warning)(outcome.in_words)
    context.add_output_metadata(
        labelled({**_state(rag), "evidence": _evidence(rag), "changed": outcome.changed})
    )


@dg.op(description=_("Lets the migration go on after rollback_partial or rollback_immediate."))
def lift_hold(context: dg.OpExecutionContext, config: ReasonConfig, rag: RagResource) -> None:
    """Let batches start again."""
    with told_as_failure():
        lifted = rag.migration.resume(reason=config.given_reason(), run_id=context.run_id)
    context.add_output_metadata(
        labelled(
            {
                **_state(rag),
                "lifted": lifted.explanation if lifted else "–",
                "changed": lifted is not None,
            }
        )
    )


rollback_immediate_job = _job_of("rollback_immediate", drop_migration, reason="", confirm="")


rollback_partial_job = _job_of("rollback_partial", stop_migration, reason="", confirm="")


rollback_promotion_job = _job_of("rollback_promotion", withdraw_promotion, reason="")


resume_migration_job = _job_of("resume_migration", lift_hold, reason="")


def _check_confirmed(given: str, word: str, consequence: str) -> None:
    if given.strip() != word:
        raise InvalidParameterError(
            _("Nothing was changed. {consequence} To confirm, write “{word}” in confirm.").format(
                consequence=consequence, word=word
            )
        )


def _counts(progress: Progress, moment: str) -> dict[str, Any]:
    return {
        f"notes_{moment}": progress.notes,
        f"chunked_{moment}": progress.chunked,
        f"chunks_{moment}": progress.chunks,
        f"vectors_{moment}": sum(progress.vectors.values()),
    }


def _evidence(rag: RagResource) -> str:
    """Say whether the evaluation of what serves now is current, aged or stale."""
    evidence = rag.serving.evidence()
    return evidence_in_words(evidence) if evidence else "–"


def _state(rag: RagResource) -> dict[str, Any]:
    """Return the counts of stored rows, what serves, and the hold, if any."""
    serving, hold = rag.serving.promotion(), rag.migration.held()
    return {
        **_counts(rag.migration.progress(), "after"),
        "serving": serving.configuration if serving else "–",
        "model": serving.model if serving else "–",
        "hold": hold.explanation if hold else "–",
    }


MEGABYTE = 1_000_000


@dg.op(
    description=_(
        "Retires an embedding model that nothing points to any more: deletes its vectors, indexes "
        "and queue."
    )
)
def retire_embedding_model(
    context: dg.OpExecutionContext, config: RetireConfig, rag: RagResource
) -> None:
    """Drop a model's data if the model is named twice; otherwise list what would be dropped."""
    is_confirmed = config.confirm == config.model
    with told_as_failure():
        contents = (
            rag.indexing.retire(config.model)
            if is_confirmed
            else rag.indexing.contents_of(config.model)
        )
        configurations = rag.indexing.configurations_of(config.model)
    message = (
        _("Model “{model}” retired. Vectors deleted: {vectors} ({megabytes:.1f} MB).")
        if is_confirmed
        else _(
            "Nothing was changed. Vectors of the model “{model}” that would be deleted: {vectors} "
            "({megabytes:.1f} MB). To confirm, write “{model}” in confirm as well."
        )
    )
    told = (
        _("The model “{model}” was retired already; nothing was changed.")
        if contents.retired
        else message
    ).format(
        model=config.model,
        vectors=sum(contents.vectors.values()),
        megabytes=contents.size / MEGABYTE,
    )
    metadata: dict[str, Any] = {
        "model": config.model,
        **{f"{kind}_vectors": contents.count(kind) for kind in VectorKind},
        "pending_notes": contents.pending,
        "failures": contents.failures,
        "bytes": contents.size,
        "configurations": ", ".join(configurations) or "–",
    }
    if not is_confirmed:
        raise dg.Failure(told, metadata=labelled(metadata), allow_retries=False)
    context.log.info(told)
    context.add_output_metadata(labelled(metadata))


retire_model_job = _job_of("retire_model", retire_embedding_model, model="", confirm="")


@dg.op(
    description=_(
        "Gives a large tenant vector indexes of its own, so that its "
        "questions find what is its own among everybody's. Nothing is "
        "stopped."
    )
)
def give_own_indexes(
    context: dg.OpExecutionContext, config: PromoteTenantConfig, rag: RagResource
) -> None:
    """Build the indexes that are missing."""
    with told_as_failure():
        built = rag.tenants.promote(config.tenant)
    context.log.info(
        _("Tenant {name}: vector indexes of its own: {count}.").format(
            name=config.tenant, count=len(built)
        )
    )
    context.add_output_metadata(labelled({"built_indexes": len(built)}))


promote_tenant_job = _job_of("promote_tenant", give_own_indexes, tenant="")


@dg.op(
    description=_(
        "Deletes the notes and uploaded documents that expired more than EXPIRED_GRACE_HOURS "
        "hours ago, with their chunks and vectors; they were no longer found."
    )
)
def purge_expired_notes(context: dg.OpExecutionContext, rag: RagResource) -> None:
    """Delete the notes and documents whose grace period after expiry is over."""
    with told_as_failure():
        documents = rag.documents.purge_expired()
        report = rag.notes.purge_expired()
    context.add_output_metadata(
        labelled(
            {
                "deleted": report.deleted,
                "left": report.left,
                "documents": documents,
                "grace_hours": rag.notes.grace_hours,
            }
        )
    )


purge_expired_job = _job_of("purge_expired", purge_expired_notes)
