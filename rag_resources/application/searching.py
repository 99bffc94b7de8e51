"""Searches a question with its implied conditions, and each file that it names on its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from rag_resources.core.filters import RetrievalFilters, narrowed
from rag_resources.core.question_reading import Reading
from rag_resources.core.types import RetrievalResponse, RetrievalResult
from rag_resources.languages.messages import _, joined

if TYPE_CHECKING:
    from rag_resources.application.wiring import Answered

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Searched:
    """A question with its result.

    Attributes:
        reading: The reading that was searched in the end.
        files: The results in each file, if the question names several.
        search: The arguments of the retrieval.
    """

    reading: Reading
    retrieved: "Answered"
    search: dict[str, Any]
    files: tuple[tuple[RetrievalResult, ...], ...] = ()


def search_as_read(
    reading: Reading, retrieve: "Callable[..., Answered]", search: dict[str, Any]
) -> Searched:
    """Search a question with its implied conditions.

    If nothing meets the implied conditions, everything is searched, and a note says so.

    Args:
        reading: The question's reading.
        retrieve: `Application.retrieve`.
        search: The caller's arguments of `retrieve`.
    """
    if reading.files:
        return _each_file(reading, retrieve, search)
    given = {**search, "filters": reading.filters}
    retrieved = retrieve(reading.searched, **given)
    if retrieved.response.results or retrieved.response.error or not reading.implied:
        return Searched(reading, retrieved, given)
    named = joined(", ", [f"«{own.text}»" for own in reading.implied])
    note = _("Nothing meets {conditions}; everything was searched.").format(conditions=named)
    reading = reading.without_implied(search.get("filters"), note)
    return Searched(reading, retrieve(reading.searched, **search), search)


def _each_file(
    reading: Reading, retrieve: "Callable[..., Answered]", search: dict[str, Any]
) -> Searched:
    """Search each file on its own, so that each is among the passages, and merge the results."""
    given = {**search, "filters": reading.filters}
    every = []
    for note_ids in reading.files:
        condition = narrowed(
            reading.filters or RetrievalFilters(), RetrievalFilters(note_ids=note_ids)
        )
        if condition is not None:
            every.append(retrieve(reading.searched, **{**search, "filters": condition}))
    if not every:  # The caller's conditions exclude all of them.
        return Searched(reading, retrieve(reading.searched, **given), given)
    config = every[0].config
    wanted = search.get("top_k") or (config.top_k.final if config else 0)
    shares = shares_of([own.response.results for own in every], wanted)
    response = _merged([own.response for own in every], shares)
    return Searched(reading, replace(every[0], response=response), given, tuple(shares))


def shares_of(found: Sequence[tuple[ResultT, ...]], wanted: int) -> list[tuple[ResultT, ...]]:
    """Return the best results of each file: together about as many as one search returns.

    Args:
        found: The results of each file, best first; at least one file.
        wanted: How many results one search returns.
    """
    each = max(1, -(-wanted // len(found)))
    return [own[:each] for own in found]


def _merged(
    responses: Sequence[RetrievalResponse], shares: Sequence[tuple[RetrievalResult, ...]]
) -> RetrievalResponse:
    results = sorted(
        (own for share in shares for own in share), key=lambda own: (-own.score, own.chunk_id)
    )
    stages: dict[str, float] = {}
    for response in responses:
        for name, elapsed in response.stages.items():
            stages[name] = stages.get(name, 0.0) + elapsed
    errors = [own.error for own in responses]
    return replace(
        responses[0],
        results=tuple(results),
        latency_ms=sum(own.latency_ms for own in responses),
        stages=stages,
        degraded=tuple(dict.fromkeys(each for own in responses for each in own.degraded)),
        messages=tuple(dict.fromkeys(each for own in responses for each in own.messages)),
        error=errors[0] if all(errors) else None,
        confidence=None,
    )
