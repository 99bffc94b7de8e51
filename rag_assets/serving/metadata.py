"""What serves as Dagster metadata; evaluations are in `rag_assets.evaluation.metadata`."""

from typing import Any

import dagster as dg

from rag_assets.labels import labelled
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import Evidence
from rag_resources.evaluation.summary import evidence_in_words
from rag_resources.store.promotions import Promotion


def serving_metadata(
    serving: StoredEvaluation | Promotion, evaluation: StoredEvaluation | None
) -> dict[str, Any]:
    """Return what serves, and figures of it.

    Args:
        serving: Names the configuration.
        evaluation: Of it; None after a rollback to what was never evaluated.
    """
    named = {
        "configuration": serving.configuration,
        "model": serving.model,
        "config_hash": serving.config_hash,
    }
    if evaluation is None:
        return named
    figures = {
        "evaluation_id": str(evaluation.evaluation_id),
        "hit_rate_at_10": evaluation.hit_rate_at_10,
        "served_hit_rate": evaluation.served_hit_rate,
        "mrr": evaluation.mrr,
        "latency_p95_ms": evaluation.latency_p95_ms,
    }
    return named | {name: value for name, value in figures.items() if value is not None}


def promotion_metadata(
    promotion: Promotion, evaluation: StoredEvaluation | None, evidence: Evidence | None = None
) -> dict[str, Any]:
    """Return what a promotion, or a rollback with its reason, made serve, with figures of it.

    Args:
        promotion: Names the configuration.
        evaluation: Of it; None if it was never evaluated.
        evidence: Whether the figures are current; None says nothing of that.
    """
    evaluated = (
        {"evaluated_at": dg.MetadataValue.timestamp(evaluation.created_at)} if evaluation else {}
    )
    return labelled(
        {
            **serving_metadata(promotion, evaluation),
            **evaluated,
            **({"evidence": evidence_in_words(evidence)} if evidence else {}),
            "promoted_at": dg.MetadataValue.timestamp(promotion.promoted_at),
            **({"rollback_reason": promotion.reason} if promotion.reason else {}),
        }
    )
