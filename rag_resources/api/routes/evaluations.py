"""`/v1/evaluations`: lists finished evaluations with their metrics, and requests new ones."""

from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse
from pydantic.alias_generators import to_camel

from rag_resources.api.bodies import (
    EvaluationBody,
    EvaluationRow,
    Evaluations,
    RequestedEvaluation,
)
from rag_resources.api.identity import Reader, Writer
from rag_resources.api.problems import ProblemError
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.languages.messages import _
from rag_resources.store.evaluation_requests import EvaluationRequest

router = APIRouter(tags=["evaluations"])


@router.get("/v1/evaluations", response_model=Evaluations)
@router.get("/api/retrieve/metrics", response_model=Evaluations)
def list_evaluations(
    request: Request,
    caller: Reader,
    config_hash: Annotated[str | None, Query(alias="configHash", max_length=16)] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 20,
) -> JSONResponse:
    """List the newest evaluations, of one configuration if its hash is given."""
    with request.app.state.tenants.of(caller.tenant) as app:
        found = app.evaluations.newest(config_hash=config_hash, limit=limit)
    return JSONResponse({"evaluations": [_as_json(each) for each in found]})


@router.get(
    "/v1/evaluations/{evaluation_id:uuid}", response_model=EvaluationRow | RequestedEvaluation
)
def show(request: Request, caller: Reader, evaluation_id: UUID) -> JSONResponse:
    """Show an evaluation, or one that was asked for and how far it is."""
    with request.app.state.tenants.of(caller.tenant) as app:
        found = app.evaluations.find(evaluation_id)
        if found is not None:
            return JSONResponse(_as_json(found))
        asked = app.evaluation_requests.find(evaluation_id)
        if asked is not None:
            made = app.evaluations.find(asked.evaluation_id) if asked.evaluation_id else None
            return JSONResponse(_asked_as_json(asked, made))
    message = _("There is no evaluation with the identifier {evaluation_id}.").format(
        evaluation_id=evaluation_id
    )
    raise ProblemError(HTTPStatus.NOT_FOUND, message)


@router.post("/v1/evaluations", status_code=HTTPStatus.ACCEPTED, response_model=RequestedEvaluation)
@router.post(
    "/api/retrieve/evaluate", status_code=HTTPStatus.ACCEPTED, response_model=RequestedEvaluation
)
def ask(request: Request, caller: Writer, body: EvaluationBody) -> JSONResponse:
    """Ask for an evaluation, which a run of Dagster makes; the same is not asked for twice."""
    with request.app.state.tenants.of(caller.tenant) as app:
        name = body.configuration or app.serving_name()
        if name not in app.configurations:
            app.configuration(name)  # Refuses an unknown name, and lists the known ones.
        asked = app.evaluation_requests.ask(name, requested_by=caller.key_id)
    headers = {"Location": f"/v1/evaluations/{asked.request_id}"}
    return JSONResponse(_asked_as_json(asked, None), HTTPStatus.ACCEPTED, headers=headers)


def _asked_as_json(asked: EvaluationRequest, made: StoredEvaluation | None) -> dict[str, Any]:
    row = {to_camel(name): value for name, value in asdict(asked).items()}
    row["evaluation"] = _as_json(made) if made else None
    encoded: dict[str, Any] = jsonable_encoder({"id": row.pop("requestId"), **row})
    return encoded


def _as_json(stored: StoredEvaluation) -> dict[str, Any]:
    row = asdict(stored)
    del row["contents"]  # Fingerprints by month, long and for comparisons only.
    written = {to_camel(name): value for name, value in row.items()}
    encoded: dict[str, Any] = jsonable_encoder({"id": written.pop("evaluationId"), **written})
    return encoded
