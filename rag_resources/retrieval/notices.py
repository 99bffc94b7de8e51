"""The messages of a retrieval for its user: what failed (property 36), and places of passages.

What operators read, in `degraded` and in the log, is in `retrieval.stages`.
"""

from collections.abc import Collection, Mapping, Sequence

from rag_resources.core.errors import (
    DatabaseTimeoutError,
    DeadlineExceededError,
    ModelMissingError,
)
from rag_resources.core.messages import Message
from rag_resources.core.places import Place
from rag_resources.core.retrievers import KINDS, RetrieverName
from rag_resources.core.texts import Text, joined

INTENT_WORDS: Mapping[str, Text] = {
    "factual": Message.INTENT_FACTUAL,
    "causal": Message.INTENT_CAUSAL,
    "temporal": Message.INTENT_TEMPORAL,
    "comparative": Message.INTENT_COMPARATIVE,
    "abstract": Message.INTENT_ABSTRACT,
}
"""Each intent of a question in words."""

# If one of these fails, results may be missing. The other stages only affect order or display, or
# fail silently.
_SEARCHING = ("embed", *(name for name in RetrieverName if KINDS[name].unavailable))


def messages(
    wanted: Sequence[RetrieverName],
    worked: Collection[RetrieverName],
    error: str | None,
    failures: Mapping[str, BaseException],
) -> tuple[str, ...]:
    """Say what is missing and why, and what can be done about it.

    Args:
        wanted: The retrievers that the configuration asks for.
        worked: The retrievers that answered.
        error: Why none answered.
        failures: The first error of each stage that failed.
    """
    told = list(
        dict.fromkeys(
            failure.message
            for failure in failures.values()
            if isinstance(failure, ModelMissingError)
        )
    )
    if error:
        return (error, *told)
    missing = [
        notice
        for name in wanted
        if name not in worked and not _searched_alike(name, worked)
        if (notice := KINDS[name].unavailable)
    ]
    if missing:
        told.insert(0, missing[0])
    if any(
        isinstance(failures.get(stage), DeadlineExceededError | DatabaseTimeoutError)
        for stage in _SEARCHING
    ):
        told.append(Message.PARTIAL_RESULTS)
    return tuple(told)


def _searched_alike(name: RetrieverName, worked: Collection[RetrieverName]) -> bool:
    """Whether another retriever of the same kind of search answered."""
    return any(KINDS[other].searches_by == KINDS[name].searches_by for other in worked)


def parts_in_words(places: Sequence[Place]) -> Text:
    """Say on which pages, or in which cells, a passage is; its headings are in its title.

    Empty for a document that has neither.
    """
    return joined(
        ", ",
        [
            Message.PLACE_PAGE.format(page=each.page)
            if each.sheet is None
            else Message.PLACE_CELLS.format(sheet=each.sheet, cells=each.cell_range)
            for each in places
            if not each.is_whole
        ],
    )


def left_out_in_words(degraded: Sequence[str]) -> tuple[Text, ...]:
    """Say in a user's words which stages a response lost; see `stages.degraded`."""
    told = (
        _LEFT_OUT[stage].format()
        if stage in _LEFT_OUT
        else Message.LEFT_OUT_OTHER.format(stage=stage)
        for stage in degraded
    )
    return tuple(dict.fromkeys(told))


_LEFT_OUT = {
    "transform": Message.LEFT_OUT_TRANSFORM,
    "embed": Message.LEFT_OUT_VECTORS,
    RetrieverName.SEMANTIC: Message.LEFT_OUT_VECTORS,
    RetrieverName.WINDOWS: Message.LEFT_OUT_WINDOWS,
    RetrieverName.FULLTEXT: Message.LEFT_OUT_WORDS,
    "diversity": Message.LEFT_OUT_DIVERSITY,
    "rerank": Message.LEFT_OUT_RERANK,
    "expand": Message.LEFT_OUT_EXPAND,
}
