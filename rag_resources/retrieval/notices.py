"""The messages of a retrieval for its user: what failed (property 36), and places of passages.

What operators read, in `degraded` and in the log, is in `retrieval.stages`.
"""

from collections.abc import Collection, Mapping, Sequence

from rag_resources.core.errors import (
    DatabaseTimeoutError,
    DeadlineExceededError,
    ModelMissingError,
)
from rag_resources.core.places import Place
from rag_resources.core.retrievers import KINDS, RetrieverName
from rag_resources.languages.messages import Text, _, joined

INTENT_WORDS: Mapping[str, Text] = {
    "factual": _("asks for a fact"),
    "causal": _("asks for a cause"),
    "temporal": _("asks for a time"),
    "comparative": _("asks for a comparison"),
    "abstract": _("open question"),
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
        told.append(_("Partial search completed (time limit exceeded)"))
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
            _("p. {page}").format(page=each.page)
            if each.sheet is None
            else _("sheet “{sheet}”, {cells}").format(sheet=each.sheet, cells=each.cell_range)
            for each in places
            if not each.is_whole
        ],
    )


def left_out_in_words(degraded: Sequence[str]) -> tuple[Text, ...]:
    """Say in a user's words which stages a response lost; see `stages.degraded`."""
    told = (
        _LEFT_OUT[stage].format()
        if stage in _LEFT_OUT
        else _("A part of the search could not be done: {stage}.").format(stage=stage)
        for stage in degraded
    )
    return tuple(dict.fromkeys(told))


_LEFT_OUT = {
    "transform": _("The question could not be analysed: it was searched as it is written."),
    "embed": _(
        "Nothing was searched by meaning: notes that say it in other words will be missing."
    ),
    RetrieverName.SEMANTIC: _(
        "Nothing was searched by meaning: notes that say it in other words will be missing."
    ),
    RetrieverName.WINDOWS: _("Whole passages were compared, not single sentences."),
    RetrieverName.FULLTEXT: _(
        "Nothing was searched by words: exact names and numbers may be missing."
    ),
    "diversity": _("Passages that say the same were not left out."),
    "score": _(
        "There was no time to score every passage by the second model: some are in the order in "
        "which they were found."
    ),
    "rerank": _("The passages were not re-ranked: they are in the order in which they were found."),
    "expand": _("The passages come without the sentences around them."),
}
