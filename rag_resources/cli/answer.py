"""Shows the passages of `rag retrieve` on stdout, what is missing on stderr."""

from typing import TYPE_CHECKING

from rag_resources.cli.output import clean, console, fail, say, warn
from rag_resources.cli.reader import told, told_day, told_number
from rag_resources.core.messages import Message
from rag_resources.core.texts import joined
from rag_resources.languages.labels import stage_label

if TYPE_CHECKING:
    from rich.panel import Panel
    from rich.text import Text

    from rag_resources.core.query import TransformedQuery
    from rag_resources.core.texts import Template
    from rag_resources.core.types import RetrievalResponse, RetrievalResult

SHOWN_CHARS = 1_500
"""Most characters shown of a passage with its context; JSON has all of them."""

_LEAD_CHARS = 200
_BORDER_CELLS = 6
"""Cells of a line of a box that a text in the line cannot have."""


def show(
    response: "RetrievalResponse",
    configuration: str,
    *,
    filtered: bool,
    score: "Template" = Message.RETRIEVED_SCORE,
    by_words: bool = False,
    language: str = "es",
) -> None:
    """Write an answer.

    Args:
        response: The answer; if it has an error it has no passages.
        configuration: Name of the configuration that answered, as shown to people.
        filtered: Whether filters restricted the notes that were searched.
        score: How scores are shown; they mean something else with each way to fuse lists.
        by_words: Whether it was searched by words alone.
        language: The language of the question, whose words are marked.
    """
    warn_of(response)
    if response.error:
        return
    if response.transformed:
        _say_searched(response.transformed)
    if not response.results:
        say(Message.RETRIEVED_NOTHING_FILTERED if filtered else Message.RETRIEVED_NOTHING)
        say(Message.RETRIEVED_NO_WORDS if by_words else Message.RETRIEVED_UNLIKE)
    screen = console()
    for rank, result in enumerate(response.results, start=1):
        asked = (response.query, language)
        shown = told(score.format(score=result.score))
        marks = not screen.is_terminal
        screen.print(_panel(rank, shown, result, asked, marks=marks))
    say_confidence(response)
    _say_cost(response, configuration, by_words=by_words)


def warn_of(response: "RetrievalResponse") -> None:
    """Write on stderr what is missing from a response, and why."""
    for message in response.messages:
        if message == response.error:
            fail(Message.CLI_ERROR.format(message=message))
        else:
            warn(message)
    if response.degraded:
        warn(
            Message.RETRIEVED_DEGRADED.format(stages=", ".join(map(stage_label, response.degraded)))
        )


def _say_searched(transformed: "TransformedQuery") -> None:
    """Say what was searched besides the question, if anything."""
    if transformed.sub_queries:
        quoted = [Message.RETRIEVED_SUB_QUERY.format(question=q) for q in transformed.sub_queries]
        say(Message.RETRIEVED_SUB_QUERIES.format(questions=joined(" · ", quoted)))
    if transformed.hypothetical_answer:
        say(Message.RETRIEVED_HYPOTHETICAL.format(answer=transformed.hypothetical_answer))


def _panel(
    rank: int, score: str, result: "RetrievalResult", asked: tuple[str, str], *, marks: bool
) -> "Panel":
    from rich.cells import cell_len
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    from rag_resources.core.retrievers import RetrieverName
    from rag_resources.core.wording import fold, matches
    from rag_resources.retrieval.notices import parts_in_words

    created = told_day(result.created_at) if result.created_at else ""
    heading = (f"{rank}", score, created, clean(result.label))
    searched = "\n".join((result.title, result.content))
    spans = matches(searched, *asked)
    words: dict[str, str] = {}
    for word in (searched[span.start : span.end].lower() for span in spans):
        words.setdefault(fold(word), word)
    name = result.external_id
    found = [clean(name)] if name not in ("", result.label) else []
    if words:
        found.append(Message.RETRIEVED_WORDS.format(words=clean(", ".join(words.values()))))
    elif RetrieverName.FULLTEXT in result.retrieval_method.split("+"):
        found.append(Message.RETRIEVED_WORDS_OF_TAGS)
    found.append(result.retrieval_method)
    if result.rerank_score is not None:
        scores = {"before": result.original_score, "score": result.rerank_score}
        found.append(Message.RETRIEVED_RERANKED.format(**scores))
    if result.place and (where := parts_in_words(result.place.places)):
        found.insert(0, where)
    title, below = " · ".join(part for part in heading if part), clean(told(joined(" · ", found)))
    passage = _passage(result, asked, marks=marks)
    fits = cell_len(below) <= console().width - _BORDER_CELLS
    return Panel(
        passage if fits else Group(passage, Text(below, style="dim", justify="right")),
        title=Text(title, no_wrap=True, overflow="ellipsis"),
        title_align="left",
        subtitle=Text(below, style="dim") if fits else None,
        subtitle_align="right",
    )


def _passage(result: "RetrievalResult", asked: tuple[str, str], *, marks: bool) -> "Text":
    """Show the match inside its context: bright on a terminal, otherwise between marks.

    The words of the question stand out by colour on a terminal; the line below names them.

    The sentences that matched best, if they are known, are underlined or between double marks. If
    the text is long, only the part around them is shown. Markdown's own marks are left out.
    """
    from rich.text import Text

    from rag_resources.core.markdown import marks_of
    from rag_resources.core.wording import matches

    text = clean(result.expanded_content)
    start, end = result.matched_bounds
    before = start - result.start_char
    best_start, best_end = (
        own + before for own in result.matched_window or (result.start_char, result.start_char)
    )
    first = max(0, best_start - _LEAD_CHARS) if len(text) > SHOWN_CHARS else 0
    last = min(len(text), first + SHOWN_CHARS)

    hidden = marks_of(text)

    def part(begin: int, until: int) -> str:
        places = range(max(begin, first), min(until, last))
        return "".join(text[place] for place in places if place not in hidden)

    best = part(best_start, best_end)
    # Marks of one kind are enough if the whole passage matched best, or is all that is shown.
    is_inside = (start, end) != (0, len(text))
    partly = marks and is_inside and (best_start, best_end) != (start, end)
    shown = Text.assemble(
        "…" if first else "",
        (part(0, start), "dim"),
        "▸" if partly else "",
        (part(start, best_start), "bold"),
        "▸▸" if marks and best else "",
        (best, "bold underline"),
        "◂◂" if marks and best else "",
        (part(best_end, end), "bold"),
        "◂" if partly else "",
        (part(end, len(text)), "dim"),
        "…" if last < len(text) else "",
    )
    if not marks:
        for span in matches(shown.plain, *asked):
            shown.stylize("yellow", span.start, span.end)
    return shown


def say_confidence(response: "RetrievalResponse") -> None:
    """Write the confidence of a response, or why there is none."""
    from rag_resources.retrieval.confidence import confidence_in_words

    if response.confidence:
        for sentence in confidence_in_words(response.confidence):
            say(sentence)


def _say_cost(response: "RetrievalResponse", configuration: str, *, by_words: bool) -> None:
    from rag_resources.retrieval.notices import INTENT_WORDS

    count, total = len(response.results), response.latency_ms
    template = Message.RETRIEVED_CACHED if response.cached else Message.RETRIEVED_COUNT
    intent = response.transformed.intent.value if response.transformed else ""
    model = "" if by_words else response.model
    how = (configuration, response.strategy, model, INTENT_WORDS.get(intent, ""))
    say(joined(" · ", (template.format(count=count, total=total), *filter(None, how))))
    if not response.cached:
        times = (
            f"{stage_label(name)} {told_number(elapsed, 0)}"
            for name, elapsed in response.stages.items()
        )
        # A plain string: stages have names in the language of operators only.
        say(str(Message.RETRIEVED_STAGES.format(stages=" · ".join(times))))
