"""`/v1/feedback`: what readers say of an answer, or of one of its citations."""

from http import HTTPStatus

from fastapi import APIRouter, Request

from rag_resources.api.bodies import FeedbackBody, FeedbackRow
from rag_resources.api.identity import Reader
from rag_resources.api.problems import ProblemError
from rag_resources.core.errors import InvalidParameterError

router = APIRouter(tags=["answers"])


@router.post("/v1/feedback")
def give(request: Request, caller: Reader, body: FeedbackBody) -> FeedbackRow:
    """Store a thumb up or down; it replaces what was said before of the same."""
    with request.app.state.tenants.of(caller.tenant) as app:
        try:
            given = app.answer_log.give_feedback(
                body.answer_id, body.verdict, citation=body.citation, comment=body.comment
            )
        except InvalidParameterError as error:
            if error.context.get("field") != "answerId":
                raise
            raise ProblemError(HTTPStatus.NOT_FOUND, error.message) from None
    return FeedbackRow.model_validate(given, from_attributes=True)
