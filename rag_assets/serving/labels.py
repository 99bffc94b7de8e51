"""What the page of a run calls the fields of a response, in words of its reader."""

from collections.abc import Mapping
from typing import Any

from rag_resources.core.messages import Message

_FIELDS: Mapping[str, str] = {
    "results": Message.LABEL_RESULTS,
    "answer": Message.LABEL_ANSWER,
    "answerer": Message.LABEL_ANSWERER,
    "passages": Message.LABEL_PASSAGES,
    "messages": Message.LABEL_MESSAGES,
    "degraded": Message.LABEL_DEGRADED,
    "confidence": Message.LABEL_CONFIDENCE,
    "configuration": Message.LABEL_CONFIGURATION,
    "strategy": Message.LABEL_STRATEGY,
    "model": Message.LABEL_MODEL,
    "intent": Message.LABEL_INTENT,
    "searched_beside": Message.LABEL_SEARCHED_BESIDE,
    "cached": Message.LABEL_CACHED,
    "latency_ms": Message.LABEL_LATENCY,
    "response": Message.LABEL_RESPONSE,
}
_STAGES: Mapping[str, str] = {
    "transform": Message.LABEL_TRANSFORM,
    "cache": Message.LABEL_CACHE,
    "embed": Message.LABEL_EMBED,
    "plan": Message.LABEL_PLAN,
    "search": Message.LABEL_SEARCH,
    "scores": Message.LABEL_SCORES,
    "fuse": Message.LABEL_FUSE,
    "fetch": Message.LABEL_FETCH,
    "diversity": Message.LABEL_DIVERSITY,
    "rerank": Message.LABEL_RERANK,
    "expand": Message.LABEL_EXPAND,
}


def label(field: str) -> str:
    """Return the name of a field; one that has none is shown as it is."""
    return str(_FIELDS.get(field, field))


def labelled(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata under names of its reader."""
    return {label(field): value for field, value in fields.items()}


def stage_times(stages: Mapping[str, float]) -> dict[str, float]:
    """Return how long each stage took, in milliseconds with two decimals, under its name."""
    return {
        str(Message.LABEL_STAGE.format(name=_STAGES.get(stage, stage))): round(elapsed, 2)
        for stage, elapsed in stages.items()
    }
