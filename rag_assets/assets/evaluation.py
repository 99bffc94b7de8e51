"""The golden dataset, one evaluation per named configuration, and their comparison."""

import dagster as dg

from rag_assets.assets.indexing import embeddings_key
from rag_assets.assets.ingestion import OWNERS, note_embeddings, notes
from rag_assets.configured import configurations
from rag_assets.failures import told_as_failure
from rag_assets.metadata import evaluation_metadata
from rag_resources.core.configuration import NamedConfiguration
from rag_resources.core.golden import golden_hash
from rag_resources.core.messages import Message
from rag_resources.evaluation.golden_files import import_golden
from rag_resources.evaluation.report import comparison_markdown
from rag_resources.evaluation.runner import evaluate
from rag_resources.resources import RagResource
from rag_resources.store.evaluations import latest_evaluations
from rag_resources.store.golden import list_golden


@dg.asset(
    deps=[notes],
    group_name="evaluation",
    owners=OWNERS,
    kinds={"python", "postgres", "json"},
    description=Message.ASSET_GOLDEN,
)
def golden_dataset(rag: RagResource) -> dg.MaterializeResult[None]:
    """Import the golden questions of the source, all of them or none."""
    application = rag.application
    source = application.settings.golden_source
    if source:
        with told_as_failure():
            import_golden(application.database, source, tenant=application.settings.tenant)
    with application.database.transaction() as connection:
        entries = list_golden(connection)
    categories = sorted({entry.category for entry in entries})
    return dg.MaterializeResult(
        metadata={
            "questions": len(entries),
            "golden_hash": golden_hash(entries),
            **{
                f"questions_{category}": sum(entry.category == category for entry in entries)
                for category in categories
            },
        }
    )


def build_evaluation_asset(configuration: NamedConfiguration) -> dg.AssetsDefinition:
    """Make the asset `evaluation_results/<configuration>`."""
    searched = (
        embeddings_key(configuration.retrieval.model)
        if configuration.retrieval.unit == "chunks"
        else note_embeddings.key
    )

    @dg.asset(
        key=evaluation_key(configuration.name),
        deps=[golden_dataset, searched],
        group_name="evaluation",
        owners=OWNERS,
        kinds={"python", "postgres"},
        tags={"role": configuration.role.value, "model": configuration.retrieval.model},
        description=configuration.description,
    )
    def evaluation_results(
        context: dg.AssetExecutionContext, rag: RagResource
    ) -> dg.MaterializeResult[None]:
        application = rag.application
        with told_as_failure():
            evaluation = evaluate(
                application.database,
                application.pipeline,
                configuration.name,
                configuration.retrieval,
                run_id=context.run.run_id,
            )
        return dg.MaterializeResult(
            metadata={
                "evaluation_id": str(evaluation.evaluation_id),
                "config_hash": configuration.retrieval.config_hash,
                **evaluation_metadata(evaluation, application),
            }
        )

    return evaluation_results


def evaluation_key(name: str) -> dg.AssetKey:
    """Return the asset key of a configuration's evaluations."""
    return dg.AssetKey(["evaluation_results", name])


evaluation_assets = [build_evaluation_asset(item) for item in configurations().values()]


@dg.asset(
    deps=[evaluation_key(name) for name in configurations()],
    group_name="evaluation",
    owners=OWNERS,
    kinds={"python", "pandas", "markdown"},
    automation_condition=dg.AutomationCondition.eager(),
    description=Message.ASSET_REPORT,
)
def evaluation_report(rag: RagResource) -> dg.MaterializeResult[None]:
    """Compare the latest evaluation of every configuration."""
    with rag.application.database.transaction() as connection:
        latest = latest_evaluations(connection)
    return dg.MaterializeResult(
        metadata={
            "configurations": len(latest),
            "comparison": dg.MetadataValue.md(comparison_markdown(latest)),
        }
    )
