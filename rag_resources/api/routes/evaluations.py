"""`/v1/evaluations`: finished evaluations, with their metrics."""

from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse
from pydantic.alias_generators import to_camel

from rag_resources.api.bodies import EvaluationRow, Evaluations
from rag_resources.api.identity import Reader
from rag_resources.api.problems import ProblemError
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.messages import Message

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


@router.get("/v1/evaluations/{evaluation_id:uuid}", response_model=EvaluationRow)
def show(request: Request, caller: Reader, evaluation_id: UUID) -> JSONResponse:
    """Show an evaluation."""
    with request.app.state.tenants.of(caller.tenant) as app:
        found = app.evaluations.find(evaluation_id)
    if found is None:
        message = Message.API_EVALUATION_UNKNOWN.format(evaluation_id=evaluation_id)
        raise ProblemError(HTTPStatus.NOT_FOUND, message)
    return JSONResponse(_as_json(found))


def _as_json(stored: StoredEvaluation) -> dict[str, Any]:
    row = asdict(stored)
    del row["contents"]  # Fingerprints by month, long and for comparisons only.
    written = {to_camel(name): value for name, value in row.items()}
    encoded: dict[str, Any] = jsonable_encoder({"id": written.pop("evaluationId"), **written})
    return encoded
