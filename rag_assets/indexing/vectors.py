"""The assets `embeddings/<model>` and `windows/<model>`, and the checks that both kinds have."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import dagster as dg

from rag_assets.automation import when_months_change
from rag_assets.configured import Configured
from rag_assets.indexing.gate import BatchConfig, pass_quality_gate, record_quality
from rag_assets.keys import CHUNKS, OWNERS, embeddings_key, windows_key
from rag_assets.labels import labelled
from rag_assets.runs.failures import told_as_failure
from rag_assets.runs.months import MonthEvents, MonthOutcome, indexed_month, materialize_months
from rag_assets.runs.partitions import batches, monthly, run_window, span
from rag_assets.runs.pools import model_pool
from rag_assets.runs.progress import MonthProgress
from rag_resources.application.indexing import Indexing
from rag_resources.application.vectors import ChunkVectors
from rag_resources.core.migration_gate import MIN_COSINE
from rag_resources.core.types import TimeWindow
from rag_resources.core.windows import WindowsConfig, windows_hash
from rag_resources.languages.messages import Text, _, joined
from rag_resources.resources import RagResource
from rag_resources.settings import Settings


@dataclass(frozen=True, slots=True)
class VectorAsset:
    """How the vectors of one kind are shown in Dagster.

    Attributes:
        key: The asset's key, by model.
        vectors: Returns the vectors of this kind from the index.
        counted: The metadata field that counts them.
        code_version: Version of the settings that decide which texts are embedded; None if only the
            chunks do.
        description: Description of the asset; takes the model.
        complete: Name, description and message of the check that none is missing.
        verified: Name and description of the check that they come from the model.
    """

    key: Callable[[str], dg.AssetKey]
    vectors: Callable[[Indexing], ChunkVectors]
    counted: str
    code_version: Callable[[Settings], str | None]
    description: Text
    complete: tuple[str, Text, Text]
    verified: tuple[str, Text]


EMBEDDINGS = VectorAsset(
    key=embeddings_key,
    vectors=lambda indexing: indexing.embeddings,
    counted="vectors",
    code_version=lambda _: None,
    description=_(
        "Vectors of the chunks with the model {model}: one of the text and one of the text with "
        "its context."
    ),
    complete=(
        "embeddings_complete",
        _("Each chunk has its two vectors, up to date and of the model's dimension."),
        _(
            "Chunks without a vector: {missing}; with that of another text: {stale}; of another "
            "dimension: {wrong_dimension}; of {chunks}."
        ),
    ),
    verified=(
        "batch_equals_single",
        _(
            "The vectors are the model's: a sample of the batch, computed again, gives the same "
            "ones, and all have length 1. Otherwise the batch is rejected."
        ),
    ),
)

WINDOWS = VectorAsset(
    key=windows_key,
    vectors=lambda indexing: indexing.windows,
    counted="windows",
    code_version=lambda _: windows_hash(WindowsConfig()),
    description=_(
        "Vectors of the windows of the chunks with the model {model}: a few sentences each, with "
        "the title and tags of the note."
    ),
    complete=(
        "windows_complete",
        _("Each chunk has its windows, up to date, inside the chunk and of the model's dimension."),
        _(
            "Chunks without windows: {missing}; with former ones: {pending}; windows outside "
            "their chunk: {out_of_bounds}; of another dimension: {wrong_dimension}; of {windows}."
        ),
    ),
    verified=(
        "windows_batch_equals_single",
        _(
            "The vectors are the model's: a sample of the batch, computed again, gives the same "
            "ones, and all have length 1. Otherwise the batch is rejected."
        ),
    ),
)


def build_vectors_asset(kind: VectorAsset, model: str, settings: Settings) -> dg.AssetsDefinition:
    """Build the asset of a kind of vectors of a model."""

    @dg.asset(
        key=kind.key(model),
        partitions_def=monthly(settings),
        backfill_policy=batches,
        code_version=kind.code_version(settings),
        pool=model_pool(model),
        deps=[CHUNKS],
        group_name="indexing",
        owners=OWNERS,
        kinds={"python", "postgres"},
        tags={"model": model},
        automation_condition=when_months_change(),
        description=kind.description.format(model=model),
    )
    def vectors_asset(
        context: dg.AssetExecutionContext, config: BatchConfig, rag: RagResource
    ) -> MonthEvents:
        indexing, vectors = rag.indexing, kind.vectors(rag.indexing)
        with told_as_failure():
            vectors.register(model)
            is_done = vectors.is_done(model, span(context.partition_keys))
        overridden = {} if is_done else pass_quality_gate(context, config, rag, [model])

        def month(window: TimeWindow) -> MonthOutcome:
            progress = MonthProgress(context.log, window, lambda: vectors.left(model, window))
            report = vectors.embed(model, window, progress=progress)
            return indexed_month(
                indexing,
                window,
                report,
                {
                    "migrated": report.notes,
                    kind.counted: report.vectors,
                    "embedded": report.embedded,
                    "reused": report.reused,
                    **overridden,
                },
                {kind.counted: report.vectors},
            )

        yield from materialize_months(context, month, lambda: vectors.build_indexes(model))

    return vectors_asset


def build_vectors_checks(
    kind: VectorAsset, model: str, configured: Configured
) -> list[dg.AssetChecksDefinition]:
    """Build the checks that a kind of vectors is complete, and comes from the model."""
    complete_name, complete_description, gaps_told = kind.complete
    verified_name, verified_description = kind.verified

    @dg.asset_check(
        asset=kind.key(model), name=complete_name, blocking=True, description=complete_description
    )
    def complete(context: dg.AssetCheckExecutionContext, rag: RagResource) -> dg.AssetCheckResult:
        window = run_window(context.run.tags, rag.settings)
        gaps = kind.vectors(rag.indexing).gaps(model, window)
        told = gaps_told.format(**asdict(gaps))
        return dg.AssetCheckResult(
            passed=gaps.total == 0,
            metadata=labelled(asdict(gaps)),
            description=joined(
                " ",
                (
                    told,
                    _(
                        "If another run or “rag run” was indexing at the same time, nothing is "
                        "missing: repeat the check when it has ended. Otherwise materialise the "
                        "asset again."
                    ),
                ),
            )
            if gaps.total
            else told,
        )

    @dg.asset_check(
        asset=kind.key(model), name=verified_name, blocking=True, description=verified_description
    )
    def verified(context: dg.AssetCheckExecutionContext, rag: RagResource) -> dg.AssetCheckResult:
        window = run_window(context.run.tags, rag.settings)
        vectors = kind.vectors(rag.indexing).verify(model, window)
        if vectors.faults:
            record_quality(context, rag, configured, model)
        elif vectors.lowest_cosine is None:
            return dg.AssetCheckResult(passed=True, description=_("There is nothing to check yet."))
        return dg.AssetCheckResult(
            passed=not vectors.faults,
            metadata=labelled(asdict(vectors)),
            description=joined("; ", vectors.faults)
            or _(
                "The lowest cosine between the stored vector and the one computed now is "
                "{cosine:.5f} (minimum: {minimum})."
            ).format(cosine=vectors.lowest_cosine, minimum=MIN_COSINE),
        )

    return [complete, verified]
