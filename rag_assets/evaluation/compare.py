"""The job that compares two evaluations."""

import dagster as dg
from pydantic import Field

from rag_assets.evaluation.metadata import comparison_metadata
from rag_assets.labels import labelled
from rag_assets.launchpad import LaunchpadConfig
from rag_assets.runs.failures import told_as_failure
from rag_resources.evaluation.summary import evidence_in_words, inferiority_in_words
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource


class CompareConfig(LaunchpadConfig):
    """Two evaluations, as the launchpad asks for them."""

    before: str = Field(
        description=_(
            "The first: a configuration (its last evaluation) or the beginning of an evaluation's "
            "identifier."
        )
    )
    after: str = Field(description=_("The second, which is judged against the first."))


@dg.op(
    description=_(
        "Compares two evaluations question by question: which is better, by how much, which "
        "questions change and what was different."
    )
)
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


@dg.job(
    name="compare",
    description=_(
        "Compares two evaluations question by question: which is better, by how much, which "
        "questions change and what was different."
    ),
    config=dg.RunConfig(
        ops={"compare_evaluations": CompareConfig(before="baseline", after="hybrid_weighted")}
    ),
)
def compare_job() -> None:
    """Compare two evaluations."""
    compare_evaluations()
