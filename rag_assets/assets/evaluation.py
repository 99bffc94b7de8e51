"""The golden dataset, an evaluation per named configuration, and the report."""

from collections.abc import Iterable, Iterator

import dagster as dg

from rag_assets.assets.notes import chosen_source
from rag_assets.keys import (
    CHUNKS,
    GOLDEN_DATASET,
    NOTE_EMBEDDINGS,
    NOTES,
    OWNERS,
    embeddings_key,
    evaluation_key,
)
from rag_assets.launchpad import SourceConfig
from rag_assets.metadata import (
    compared_table,
    golden_changes,
    labelled,
    question_metadata,
    report_numbers,
    stage_metadata,
    stored_metadata,
)
from rag_assets.runs.failures import told_as_failure
from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig
from rag_resources.core.configuration_notices import notices
from rag_resources.core.golden import golden_hash
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.store.golden import GoldenImport


@dg.asset(
    deps=[NOTES],
    group_name="evaluation",
    owners=OWNERS,
    kinds={"python", "postgres", "json"},
    description=_("Questions with their relevant notes: the yardstick for each configuration."),
)
def golden_dataset(
    context: dg.AssetExecutionContext, config: SourceConfig, rag: RagResource
) -> dg.MaterializeResult[None]:
    """Import the golden questions of the source, all or none.

    Without a source the stored questions are kept. A question that came from the source and is gone
    from it is deleted, named, and kept in the history. Questions that a person entered or changed
    stay.
    """
    imported = GoldenImport([])
    with told_as_failure():
        source = chosen_source(context, config, rag.notes)
        if source.golden:
            imported = rag.golden.import_file(source.golden, run_id=context.run.run_id)
    for problem in imported.unknown:
        context.log.warning(problem)
    entries = rag.golden.entries()
    categories = sorted({entry.category for entry in entries})
    return dg.MaterializeResult(
        metadata=labelled(
            {
                "questions": len(entries),
                "golden_hash": golden_hash(entries),
                **golden_changes(imported),
                **{
                    f"questions_{category}": sum(entry.category == category for entry in entries)
                    for category in categories
                },
            }
        )
    )


def build_evaluation_asset(configuration: NamedConfiguration) -> dg.AssetsDefinition:
    """Build the asset `evaluation_results/<configuration>`."""

    @dg.asset(
        key=evaluation_key(configuration.name),
        deps=[GOLDEN_DATASET, *_searched(configuration.retrieval)],
        group_name="evaluation",
        owners=OWNERS,
        kinds={"python", "postgres"},
        tags={"role": configuration.role.value, **_model_tag(configuration.retrieval)},
        description=" ".join((configuration.description, *notices(configuration.retrieval))),
    )
    def evaluation_results(
        context: dg.AssetExecutionContext, rag: RagResource
    ) -> dg.MaterializeResult[None]:
        with told_as_failure():
            made = rag.evaluations.run(configuration, run_id=context.run.run_id)
        return dg.MaterializeResult(
            metadata=labelled(
                {
                    **stored_metadata(rag.evaluations.stored(made)),
                    **question_metadata(made.outcomes),
                    **stage_metadata(made.summary.stages),
                }
            )
        )

    return evaluation_results


def _model_tag(config: RetrievalConfig) -> dict[str, str]:
    """Return the tag of the model that a configuration searches with; none if by words alone."""
    return {"model": config.model} if config.needs_vectors else {}


def _searched(config: RetrievalConfig) -> list[dg.AssetKey]:
    """Return the assets that a configuration searches."""
    if config.unit == "notes":
        return [NOTE_EMBEDDINGS if config.needs_vectors else NOTES]
    return [embeddings_key(config.model) if config.needs_vectors else CHUNKS]


def build_report_asset(configurations: Iterable[str]) -> dg.AssetsDefinition:
    """Build the asset `evaluation_report`.

    Args:
        configurations: Names of the evaluated configurations.
    """

    @dg.asset(
        deps=[evaluation_key(name) for name in configurations],
        group_name="evaluation",
        owners=OWNERS,
        kinds={"python", "html"},
        automation_condition=dg.AutomationCondition.eager(),
        description=_(
            "The evaluations as a report: an HTML page with configurations, comparison with what "
            "serves, history and questions not found; here its main part."
        ),
    )
    def evaluation_report(
        context: dg.AssetExecutionContext, rag: RagResource
    ) -> Iterator[dg.MaterializeResult[None]]:
        """Write the report page and show its main part in Dagster.

        If the serving configuration no longer passes, the run fails and says why.
        If that cannot be judged, the metadata and a warning say why.
        """
        with told_as_failure():
            report = rag.evaluations.report()
            path = rag.evaluations.write_report(report)
            serving = rag.evaluations.serving()
        latest = [item.evaluation for item in report.configurations]
        said = serving.fallen or serving.unjudged
        yield dg.MaterializeResult(
            metadata=labelled(
                {
                    "report": dg.MetadataValue.path(path),
                    "configurations": len(latest),
                    "comparison": compared_table(report),
                    **({"serving_verdict": said} if said else {}),
                    **report_numbers(report),
                }
            )
        )
        if serving.unjudged:
            context.log.warning(serving.unjudged)
        if serving.fallen:
            raise dg.Failure(serving.fallen, allow_retries=False)

    return evaluation_report
