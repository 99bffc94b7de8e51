"""Shows the answer of `rag retrieve`: passages on stdout, what is missing on stderr."""

from typing import TYPE_CHECKING

from rag_resources.cli.output import clean, console, fail, say, warn
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rich.panel import Panel
    from rich.text import Text

    from rag_resources.core.query import TransformedQuery
    from rag_resources.core.types import RetrievalResponse, RetrievalResult

SHOWN_CHARS = 1_500
"""Most characters shown of a passage with its context; JSON has all of them."""

_LEAD_CHARS = 200


def show(response: "RetrievalResponse", configuration: str, *, filtered: bool) -> None:
    """Write an answer.

    Args:
        response: The answer; if it has an error it has no passages.
        configuration: Name of the configuration that answered, as shown to people.
        filtered: Whether filters restricted the notes that were searched.
    """
    _warn(response)
    if response.error:
        return
    if response.transformed:
        _say_searched(response.transformed)
    if not response.results:
        say(Message.RETRIEVED_NOTHING_FILTERED if filtered else Message.RETRIEVED_NOTHING)
    screen = console()
    for rank, result in enumerate(response.results, start=1):
        screen.print(_panel(rank, result, marks=not screen.is_terminal))
    _say_cost(response, configuration)


def _warn(response: "RetrievalResponse") -> None:
    for message in response.messages:
        if message == response.error:
            fail(Message.CLI_ERROR.format(message=message))
        else:
            warn(message)
    if response.degraded:
        warn(Message.RETRIEVED_DEGRADED.format(stages=", ".join(response.degraded)))


def _say_searched(transformed: "TransformedQuery") -> None:
    """Say what was searched besides the question, if anything."""
    if transformed.sub_queries:
        parts = " · ".join(f"«{question}»" for question in transformed.sub_queries)
        say(Message.RETRIEVED_SUB_QUERIES.format(questions=parts))
    if transformed.hypothetical_answer:
        say(Message.RETRIEVED_HYPOTHETICAL.format(answer=transformed.hypothetical_answer))


def _panel(rank: int, result: "RetrievalResult", *, marks: bool) -> "Panel":
    from rich.panel import Panel
    from rich.text import Text

    from rag_resources.retrieval.notices import place_in_words

    created = f"{result.created_at:%Y-%m-%d}" if result.created_at else ""
    heading = (f"{rank}", f"{result.score:.3f}", created, clean(result.title))
    found = result.retrieval_method
    if result.rerank_score is not None:
        found += " · " + Message.RETRIEVED_RERANKED.format(
            before=result.original_score, score=result.rerank_score
        )
    if result.place:
        found = f"{place_in_words(result.place)} · {found}"
    return Panel(
        _passage(result, marks=marks),
        title=Text(" · ".join(part for part in heading if part)),
        title_align="left",
        subtitle=Text(clean(found), style="dim"),
        subtitle_align="right",
    )


def _passage(result: "RetrievalResult", *, marks: bool) -> "Text":
    """Show the match inside its context: bright on a terminal, otherwise between marks."""
    from rich.text import Text

    start, end = result.matched_bounds
    first = max(0, start - _LEAD_CHARS) if len(result.expanded_content) > SHOWN_CHARS else 0
    text = clean(result.expanded_content)
    last = min(len(text), first + SHOWN_CHARS)
    shown_end = min(end, last)
    return Text.assemble(
        "…" if first else "",
        (text[first:start], "dim"),
        "▸" if marks else "",
        (text[start:shown_end], "bold"),
        "◂" if marks else "",
        (text[shown_end:last], "dim"),
        "…" if last < len(text) else "",
    )


def _say_cost(response: "RetrievalResponse", configuration: str) -> None:
    count, total = len(response.results), response.latency_ms
    template = Message.RETRIEVED_CACHED if response.cached else Message.RETRIEVED_COUNT
    intent = response.transformed.intent.value if response.transformed else ""
    how = (configuration, response.strategy, response.model, _INTENTS.get(intent, ""))
    say(" · ".join((template.format(count=count, total=total), *filter(None, how))))
    if not response.cached:
        stages = " · ".join(f"{name} {elapsed:.0f}" for name, elapsed in response.stages.items())
        say(Message.RETRIEVED_STAGES.format(stages=stages))


_INTENTS = {
    "factual": Message.INTENT_FACTUAL,
    "causal": Message.INTENT_CAUSAL,
    "temporal": Message.INTENT_TEMPORAL,
    "comparative": Message.INTENT_COMPARATIVE,
    "abstract": Message.INTENT_ABSTRACT,
}
