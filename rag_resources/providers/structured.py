"""Structured output of language models: the schema that is sent, and the check of the answer."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from rag_resources.core.errors import InvalidAnswerError
from rag_resources.languages.messages import _
from rag_resources.providers.inputs import clean
from rag_resources.providers.protocols import AnswerT


def parsed(content: str, shape: type[AnswerT], *, model: str, **context: object) -> AnswerT:
    """Validate a language model's answer.

    Args:
        content: JSON, as the model wrote it.
        shape: The requested shape.
        model: Name of the model, for the error.
        context: Further values of the error.

    Raises:
        InvalidAnswerError: It has another shape.
    """
    try:
        return shape.model_validate_json(content)
    except ValidationError as error:
        # The cause is dropped: it holds the answer, which may quote the question.
        raise InvalidAnswerError(
            _("The model {model} did not answer in the form that was asked for.").format(
                model=model
            ),
            model=model,
            shape=shape.__name__,
            problems=sorted({problem["type"] for problem in error.errors()}),
            **context,
        ) from None


def chat_messages(prompt: str, system: str) -> list[dict[str, str]]:
    """Return the messages of a chat of one question."""
    instructions = [{"role": "system", "content": clean(system)}] if system else []
    return [*instructions, {"role": "user", "content": clean(prompt)}]


def strict_schema(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a shape that allows no other fields and requires all of its own.

    OpenAI accepts no other schemas in its strict mode.
    """
    schema: dict[str, Any] = _strict(shape.model_json_schema())
    return schema


def _strict(part: Any) -> Any:
    if isinstance(part, list):
        return [_strict(item) for item in part]
    if not isinstance(part, Mapping):
        return part
    made = {key: _strict(value) for key, value in part.items()}
    if made.get("type") == "object" and isinstance(made.get("properties"), dict):
        made |= {"additionalProperties": False, "required": list(made["properties"])}
    return made
