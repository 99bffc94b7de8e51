"""Which notes a question is asked of."""

from typing import Annotated
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from rag_resources.core.messages import Message

ShortText = Annotated[str, Field(min_length=1, max_length=200)]
"""As a filter gives it: a tag, a source, a metadata key."""
LongText = Annotated[str, Field(max_length=1000)]


class RetrievalFilters(BaseModel):
    """Conditions a note must meet, all of them; an empty one is no condition.

    Attributes:
        source: The source the note came from.
        tags: The note has every one of these.
        note_ids: The note is one of these.
        created_from: The note is of this moment or later.
        created_until: The note is older than this moment.
        metadata: The note's metadata has every one of these keys with exactly this value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: ShortText | None = None
    tags: tuple[ShortText, ...] = Field((), max_length=20)
    note_ids: tuple[UUID, ...] = Field((), max_length=1000)
    created_from: AwareDatetime | None = None
    created_until: AwareDatetime | None = None
    metadata: dict[ShortText, LongText | int | float | bool | None] = Field({}, max_length=20)

    @model_validator(mode="after")
    def _some_time(self) -> "RetrievalFilters":
        if self.created_from and self.created_until and self.created_from >= self.created_until:
            raise ValueError(Message.FILTER_EMPTY_PERIOD)
        return self

    @property
    def is_empty(self) -> bool:
        """Whether every note meets them."""
        return self == RetrievalFilters()
