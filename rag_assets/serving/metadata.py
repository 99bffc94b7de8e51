"""What serves as Dagster metadata; evaluations are in `rag_assets.evaluation.metadata`."""

from typing import Any

import dagster as dg

from rag_assets.labels import labelled
from rag_resources.application import Application
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.store.promotions import Promotion


def serving_metadata(
    serving: StoredEvaluation | Promotion, evaluation: StoredEvaluation | None
) -> dict[str, Any]:
    """Return what serves, and the figures that it was promoted on.

    Args:
        serving: Names the configuration.
        evaluation: What it was promoted on; None after a rollback to what was never evaluated.
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


def promotion_metadata(application: Application, promotion: Promotion) -> dict[str, Any]:
    """Return what a promotion, or a rollback with its reason, made serve."""
    known = promotion.evaluation_id
    metadata = {
        **serving_metadata(promotion, application.evaluations.find(known) if known else None),
        "changed": True,
        "promoted_at": dg.MetadataValue.timestamp(promotion.promoted_at),
        **({"rollback_reason": promotion.reason} if promotion.reason else {}),
    }
    return labelled(metadata)
