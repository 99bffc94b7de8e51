"""The asset `promoted_config`: the configuration that serves."""

from collections.abc import Iterable
from typing import Any

import dagster as dg
from pydantic import Field

from rag_assets.configured import Configured
from rag_assets.keys import OWNERS, evaluation_key
from rag_assets.labels import labelled
from rag_assets.launchpad import LaunchpadConfig
from rag_assets.outside_runs import shown_evaluation
from rag_assets.runs.failures import told_as_failure
from rag_assets.serving.metadata import serving_metadata
from rag_resources.evaluation.summary import evidence_in_words
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource


class PromotionConfig(LaunchpadConfig):
    """What to promote, as the launchpad asks for it."""

    configuration: str = Field(
        default="",
        description=_("The one that should serve; without it the best of those that pass."),
    )


def any_candidate_passes(candidates: Iterable[str]) -> dg.AutomationCondition[Any]:
    """Return the condition that one of the candidates passes its gate; it may be any of them.

    Only a check of a run counts, whatever its tags: what the command line or a person reports never
    promotes by itself.
    """
    gates = dg.AssetSelection.checks(
        *(dg.AssetCheckKey(evaluation_key(name), "hit_rate_gate") for name in candidates)
    )
    passed = dg.AutomationCondition.check_passed() & dg.AutomationCondition.executed_with_tags()
    return dg.AutomationCondition.any_deps_match(
        dg.AutomationCondition.any_checks_match(passed).allow(gates)
    )


def build_promotion_asset(configured: Configured) -> dg.AssetsDefinition:
    """Build the asset `promoted_config`."""

    @dg.asset(
        deps=[evaluation_key(name) for name in configured.candidates],
        group_name="serving",
        owners=OWNERS,
        kinds={"python", "postgres"},
        automation_condition=dg.AutomationCondition.eager()
        & any_candidate_passes(configured.candidates),
        description=_(
            "The configuration that serves. It is materialised only with a candidate whose last "
            "evaluation passes the gate. “Overview” has the last promotion or rollback by a run; "
            "“Events” and “rag status” also have what came since from a terminal."
        ),
    )
    def promoted_config(
        context: dg.AssetExecutionContext, config: PromotionConfig, rag: RagResource
    ) -> dg.MaterializeResult[None]:
        """Promote a candidate that passes its gate on an evaluation of what is searched now."""
        with told_as_failure():
            if config.configuration:
                configured.configurations.named(config.configuration)
            outcome = rag.serving.promote(
                configured.configurations,
                name=config.configuration or None,
                run_id=context.run.run_id,
            )
        for name in outcome.evaluated_again:
            evaluation, known = rag.evaluations.latest(name), configured.configurations
            if evaluation and name in known:
                for event in shown_evaluation(rag.application, evaluation, known[name]):
                    context.log_event(event)
        return dg.MaterializeResult(
            metadata=labelled(
                {
                    **serving_metadata(outcome.evaluation, outcome.evaluation),
                    "evidence": evidence_in_words(outcome.evidence),
                    "evaluated_again": ", ".join(outcome.evaluated_again) or "–",
                    "changed": outcome.changed and not outcome.served_already,
                    "refused": dg.MetadataValue.md(
                        "\n".join(f"- {name}: {reason}" for name, reason in outcome.refused.items())
                        or "–"
                    ),
                }
            )
        )

    return promoted_config
