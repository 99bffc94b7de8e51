"""What serves as Dagster metadata; evaluations are in `rag_assets.evaluation.metadata`."""

from typing import Any

import dagster as dg

from rag_assets.labels import labelled
from rag_resources.application import Application
from rag_resources.core.evaluation import StoredEvaluation
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


def promotion_metadata(application: Application, promotion: Promotion) -> dict[str, Any]:
    """Return what a promotion, or a rollback with its reason, made serve, with figures of it.

    A promotion has those that it was decided on. A rollback returns to what was promoted on figures
    that may be stale by now, so it has the latest.
    """
    evaluation = application.evaluations.latest(promotion.configuration)
    decided = promotion.evaluation_id if not promotion.reason else None
    if decided or evaluation is None or evaluation.config_hash != promotion.config_hash:
        known = decided or promotion.evaluation_id
        evaluation = application.evaluations.find(known) if known else None
    metadata = {
        **serving_metadata(promotion, evaluation),
        **_evidence(application, evaluation),
        "changed": True,
        "promoted_at": dg.MetadataValue.timestamp(promotion.promoted_at),
        **({"rollback_reason": promotion.reason} if promotion.reason else {}),
    }
    return labelled(metadata)


def _evidence(application: Application, evaluation: StoredEvaluation | None) -> dict[str, str]:
    """Say whether the figures of an evaluation are current, aged or stale."""
    if evaluation is None:
        return {}
    evidence = application.evaluations.evidence([evaluation])[evaluation.evaluation_id]
    return {"evidence": evidence_in_words(evidence)}
