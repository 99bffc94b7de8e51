"""The job that compares two evaluations."""

import dagster as dg
from pydantic import Field

from rag_assets.evaluation.metadata import comparison_metadata
from rag_assets.labels import labelled
from rag_assets.launchpad import LaunchpadConfig
from rag_assets.runs.failures import told_as_failure
from rag_resources.core.messages import Message
from rag_resources.evaluation.summary import evidence_in_words, inferiority_in_words
from rag_resources.resources import RagResource


class CompareConfig(LaunchpadConfig):
    """Two evaluations, as the launchpad asks for them."""

    before: str = Field(description=Message.HELP_COMPARE_BEFORE)
    after: str = Field(description=Message.HELP_COMPARE_AFTER)
    common_only: bool = Field(default=False, description=Message.HELP_COMPARE_COMMON)


@dg.op(description=Message.HELP_COMPARE)
def compare_evaluations(
    context: dg.OpExecutionContext, config: CompareConfig, rag: RagResource
) -> None:
    """Compare the second evaluation with the first, and name the causes of lost questions."""
    with told_as_failure():
        found, judged = rag.evaluations.compare(
            config.before, config.after, common_only=config.common_only
        )
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


@dg.job(
    name="compare",
    description=Message.HELP_COMPARE,
    config=dg.RunConfig(
        ops={
            "compare_evaluations": CompareConfig(
                before="baseline", after="hybrid_weighted", common_only=True
            )
        }
    ),
)
def compare_job() -> None:
    """Compare two evaluations."""
    compare_evaluations()
