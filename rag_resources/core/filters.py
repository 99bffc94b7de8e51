"""Filters: the conditions that notes must meet to be searched."""

from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    StrictBool,
    StrictInt,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

from rag_resources.core.errors import InvalidFiltersError
from rag_resources.core.types import DateSource
from rag_resources.core.validation import describe_problems
from rag_resources.languages.messages import _

ValueT = TypeVar("ValueT")

_VALUE_CHARS = 1000
MAX_EXCLUDED = 10_000
"""Most notes that a search can exclude."""


def _findable(value: ValueT) -> ValueT:
    """Return a value if a note can have it; refuse others."""
    if isinstance(value, str) and "\0" in value:
        raise ValueError(_("has a character that cannot be stored (NUL or half a character)"))
    return value


def _in_one_problem(value: ValueT, validate: ValidatorFunctionWrapHandler) -> ValueT:
    """Report a value of the wrong type once, instead of once for each accepted type."""
    try:
        valid: ValueT = validate(value)
    except ValidationError:
        message = _(
            "must be a text of at most {max_length} characters, a number, true, false or null"
        ).format(max_length=_VALUE_CHARS)
        raise ValueError(message) from None
    return valid


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(_("in UTC it is outside of the years 1 to 9999")) from None


ShortText = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_findable)]
"""A tag, a source or a metadata key in a filter."""
LongText = Annotated[str, Field(max_length=_VALUE_CHARS, strict=True)]
LongNumber = Annotated[StrictInt, Field(gt=-(10**_VALUE_CHARS), lt=10**_VALUE_CHARS)]
Number = Annotated[FiniteFloat, Field(strict=True)]
MetadataValue = Annotated[
    LongText | LongNumber | Number | StrictBool | None,
    WrapValidator(_in_one_problem),
    AfterValidator(_findable),
    # Readers of JSON Schema cannot represent the bounds of `LongNumber`.
    WithJsonSchema({"anyOf": [{"type": name} for name in ("string", "number", "boolean", "null")]}),
]
Moment = Annotated[datetime, AfterValidator(_in_utc)]
"""A date, or a date and time; in UTC by default, like the monthly partitions."""


class RetrievalFilters(BaseModel):
    """Conditions that a note must meet, all of them; an empty field is no condition.

    Attributes:
        source: The note came from this source.
        tags: The note has all of these tags.
        note_ids: The note is one of these.
        excluded_note_ids: The note is none of these.
        date_source: The note's date is from there.
        created_from: The note was created at this time or later.
        created_until: The note was created before this time.
        metadata: The note's metadata has all of these keys with exactly these values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: ShortText | None = None
    tags: tuple[ShortText, ...] = Field((), max_length=20)
    note_ids: tuple[UUID, ...] = Field((), max_length=1000)
    excluded_note_ids: tuple[UUID, ...] = Field((), max_length=MAX_EXCLUDED)
    date_source: DateSource | None = None
    created_from: Moment | None = None
    created_until: Moment | None = None
    metadata: dict[ShortText, MetadataValue] = Field({}, max_length=20)

    @model_validator(mode="after")
    def _some_time(self) -> "RetrievalFilters":
        if self.created_from and self.created_until and self.created_from >= self.created_until:
            names = {"start": "created_from", "end": "created_until"}
            raise ValueError(_("{start} must be before {end}").format(**names))
        return self

    @property
    def is_empty(self) -> bool:
        """Whether there are no conditions, so that every note meets them."""
        return self == RetrievalFilters()


def parse_filters(raw: Any) -> RetrievalFilters:
    """Validate filters.

    Raises:
        InvalidFiltersError: They are invalid; every problem is named.
    """
    try:
        return RetrievalFilters.model_validate(raw)
    except ValidationError as error:
        raise InvalidFiltersError(
            _("The filters are not valid:"), describe_problems(error, RetrievalFilters)
        ) from error


def narrowed(allowed: RetrievalFilters, asked: RetrievalFilters) -> RetrievalFilters | None:
    """Combine filters that always hold with those of a request.

    Returns:
        Filters that a note meets if it meets both; None if the request names something that the
        permanent filters exclude by name.
    """
    source = allowed.source or asked.source
    date_source = allowed.date_source or asked.date_source
    note_ids = allowed.note_ids or asked.note_ids
    if allowed.note_ids and asked.note_ids:
        note_ids = tuple(sorted(set(allowed.note_ids) & set(asked.note_ids)))
    metadata = {**asked.metadata, **allowed.metadata}
    conflict = (
        (asked.source and asked.source != source)
        or (asked.date_source and asked.date_source != date_source)
        or (asked.note_ids and not note_ids)
        or any(_differ(metadata[name], value) for name, value in asked.metadata.items())
    )
    if conflict:
        return None
    fields = {
        "source": source,
        "date_source": date_source,
        "tags": tuple(dict.fromkeys((*allowed.tags, *asked.tags))),
        "note_ids": note_ids,
        "excluded_note_ids": (*allowed.excluded_note_ids, *asked.excluded_note_ids),
        "created_from": max(filter(None, (allowed.created_from, asked.created_from)), default=None),
        "created_until": min(
            filter(None, (allowed.created_until, asked.created_until)), default=None
        ),
        "metadata": metadata,
    }
    try:
        return RetrievalFilters.model_validate(fields)
    except ValidationError:  # The periods do not overlap, or there are too many conditions.
        return None


def _differ(one: Any, other: Any) -> bool:
    """Whether two JSON values differ; `1 == True` in Python."""
    return bool(one != other) or isinstance(one, bool) != isinstance(other, bool)
