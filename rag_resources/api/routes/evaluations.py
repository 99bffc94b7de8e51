"""`/v1/evaluations`: measures configurations in this process, and lists what was measured."""

import asyncio
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

import anyio.to_thread
import structlog
from fastapi import APIRouter, Query, Request, Response

from rag_resources.api.bodies import (
    Evaluated,
    EvaluationBody,
    EvaluationMetrics,
    EvaluationRow,
    Evaluations,
    RequestedEvaluation,
)
from rag_resources.api.identity import Reader, Writer
from rag_resources.api.problems import ProblemError, invalid
from rag_resources.core.configuration import NamedConfiguration, with_overrides
from rag_resources.core.errors import RagError
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.languages.messages import _

router = APIRouter(tags=["evaluations"])

AT_ONCE_S = 30.0
"""How long a caller waits for the metrics; later they are at the address that it is given."""

AD_HOC = "api"
"""The name under which a configuration with changed fields is stored."""

LATER: dict[int | str, dict[str, Any]] = {HTTPStatus.ACCEPTED: {"model": RequestedEvaluation}}
_FIGURES = {
    "hit_rate_k1": "hit_rate_at_1",
    "hit_rate_k3": "hit_rate_at_3",
    "hit_rate_k5": "hit_rate_at_5",
    "hit_rate_k10": "hit_rate_at_10",
    "mrr": "mrr",
}
_log = structlog.get_logger()


@router.get("/v1/evaluations")
@router.get("/api/retrieve/metrics")
def list_evaluations(
    request: Request,
    caller: Reader,
    config_hash: Annotated[str | None, Query(alias="configHash", max_length=16)] = None,
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
) -> Evaluations:
    """List the newest evaluations, of one configuration if its hash is given."""
    with request.app.state.tenants.of(caller.tenant) as app:
        found = app.evaluations.newest(config_hash=config_hash, limit=limit)
    return Evaluations(evaluations=[_row(each) for each in found])


@router.get("/v1/evaluations/{evaluation_id:uuid}")
def show(
    request: Request, caller: Reader, evaluation_id: UUID
) -> EvaluationRow | RequestedEvaluation:
    """Show an evaluation, or how far one is that was asked for."""
    with request.app.state.tenants.of(caller.tenant) as app:
        found = app.evaluations.find(evaluation_id)
        if found is not None:
            return _row(found)
        asked = app.evaluation_requests.find(evaluation_id)
        made = asked and asked.evaluation_id and app.evaluations.find(asked.evaluation_id)
    if asked is None:
        message = _("“{name}” does not exist.").format(name=evaluation_id)
        raise ProblemError(HTTPStatus.NOT_FOUND, message)
    return RequestedEvaluation(**asked.model_dump(), evaluation=_row(made) if made else None)


@router.post("/v1/evaluations", responses=LATER)
@router.post("/api/retrieve/evaluate", responses=LATER)
async def evaluate(
    request: Request, response: Response, caller: Writer, body: EvaluationBody
) -> Evaluated | RequestedEvaluation:
    """Measure a configuration; after 30 s, answer 202 with the address of the result."""
    tenants = request.app.state.tenants

    def asked_for() -> tuple[NamedConfiguration, RequestedEvaluation]:
        with tenants.of(caller.tenant) as app:
            chosen = app.configuration(body.configuration or app.serving_name())
            if changes := body.config.overrides():
                retrieval = with_overrides(chosen.retrieval, changes)
                chosen = chosen.model_copy(update={"name": AD_HOC, "retrieval": retrieval})
            if body.category:
                entries = app.golden.entries()
                if not any(each.category == body.category for each in entries):
                    raise invalid(_("category: no golden question has it"))
            asked = app.evaluation_requests.begin(chosen.name, requested_by=caller.key_id)
            return chosen, RequestedEvaluation(**asked.model_dump())

    def measured(chosen: NamedConfiguration, asked: RequestedEvaluation) -> StoredEvaluation | None:
        with tenants.of(caller.tenant) as app:
            try:
                made = app.evaluations.run(chosen)
            except RagError as error:
                app.evaluation_requests.finish(asked.id, error=error.message)
                raise
            app.evaluation_requests.finish(asked.id, evaluation_id=made.evaluation_id)
            found: StoredEvaluation | None = app.evaluations.find(made.evaluation_id)
            return found

    chosen, asked = await anyio.to_thread.run_sync(asked_for)
    working = asyncio.get_running_loop().run_in_executor(
        request.app.state.measuring, measured, chosen, asked
    )
    working.add_done_callback(_note_failure)
    done, __ = await asyncio.wait({working}, timeout=AT_ONCE_S)
    stored = working.result() if done else None
    if stored is None:
        response.status_code = HTTPStatus.ACCEPTED
        response.headers["Location"] = f"/v1/evaluations/{asked.id}"
        return asked
    return Evaluated(
        evaluation_id=stored.evaluation_id,
        config_hash=stored.config_hash,
        metrics=_metrics(stored, body.category),
        total_queries=_total(stored, body.category),
        timestamp=stored.created_at,
    )


def _note_failure(working: "asyncio.Future[StoredEvaluation | None]") -> None:
    if not working.cancelled() and (error := working.exception()):
        _log.warning("evaluation_failed", error=type(error).__name__)


def _total(stored: StoredEvaluation, category: str | None) -> int:
    if category is None:
        return stored.total_queries
    return int(stored.breakdown.get(f"category:{category}", {}).get("queries", 0))


def _metrics(stored: StoredEvaluation, category: str | None = None) -> EvaluationMetrics:
    """Return the figures of all questions, or of a category; latencies are always of all."""
    own = stored.breakdown.get(f"category:{category}", {}) if category else None
    figures = {
        name: getattr(stored, figure) if own is None else own.get(figure)
        for name, figure in _FIGURES.items()
    }
    judged = {"faithfulness": stored.faithfulness, "answer_relevance": stored.answer_relevance}
    return EvaluationMetrics(
        **figures,
        **(judged if own is None else {name: own.get(name) for name in judged}),
        latency_p50=stored.latency_p50_ms,
        latency_p95=stored.latency_p95_ms,
        latency_p99=stored.latency_p99_ms,
    )


def _row(stored: StoredEvaluation) -> EvaluationRow:
    return EvaluationRow(
        id=stored.evaluation_id,
        configuration=stored.configuration,
        config_hash=stored.config_hash,
        config=dict(stored.config),
        model=stored.model,
        golden_hash=stored.golden_hash,
        gate=stored.gate,
        metrics=_metrics(stored),
        served_hit_rate=stored.served_hit_rate,
        breakdown=stored.breakdown,
        total_queries=stored.total_queries,
        failed_queries=stored.failed_queries,
        timestamp=stored.created_at,
    )
