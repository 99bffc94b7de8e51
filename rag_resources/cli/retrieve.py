"""`rag retrieve`: shows the passages that answer a question."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rag_resources.cli.output import (
    JsonOption,
    clean,
    console,
    fail,
    say,
    told,
    told_day,
    warn,
    working,
    write_json,
)
from rag_resources.cli.search_options import (
    ConfigOption,
    FilterOption,
    LanguageOption,
    QuestionArgument,
    SetOption,
    TopKOption,
    search_of,
)
from rag_resources.cli.session import application
from rag_resources.languages.labels import stage_label
from rag_resources.languages.messages import _, joined

if TYPE_CHECKING:
    from rich.panel import Panel
    from rich.text import Text

    from rag_resources.core.types import RetrievalResponse, RetrievalResult

SHOWN_CHARS = 1_500
"""Most characters shown of a passage with its context; JSON has all of them."""

_LEAD_CHARS = 200


def retrieve(
    question: QuestionArgument,
    config: ConfigOption = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy", metavar="ESTRATEGIA", help="semantic, fulltext, hybrid, hybrid+rerank."
        ),
    ] = None,
    top_k: TopKOption = None,
    changed: SetOption = None,
    filters: FilterOption = None,
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question with passages."""
    search = search_of(
        question,
        config=config,
        top_k=top_k,
        changed=changed,
        filters=filters,
        language=language,
        strategy=strategy,
    )
    with application() as app, working(_("Searching…")):
        answered = app.retrieve(search.question, **search.arguments(app))
    response = answered.response.reworded(told)
    if as_json:
        write_json(answered.origin_to_json() | response.to_json())
    else:
        warn_of(response)
        if not response.error:
            _show(response, answered.configuration)
    if response.error:
        raise typer.Exit(1)


def _show(response: "RetrievalResponse", configuration: str) -> None:
    from rag_resources.retrieval.confidence import confidence_in_words

    if not response.results:
        say(_("No note answers this question with these filters and this configuration."))
    for rank, result in enumerate(response.results, start=1):
        console().print(_panel(rank, result))
    if response.confidence:
        for sentence in confidence_in_words(response.confidence):
            say(sentence)
    count = _("Results: {count}, in {total:.0f} ms").format(
        count=len(response.results), total=response.latency_ms
    )
    say(joined(" · ", (count, configuration, response.strategy)))


def warn_of(response: "RetrievalResponse") -> None:
    """Write on stderr what is missing from a response, and why."""
    for message in response.messages:
        if message == response.error:
            fail(_("Error: {message}").format(message=message))
        else:
            warn(message)
    if response.degraded:
        stages = ", ".join(map(stage_label, response.degraded))
        warn(
            _("Stages left out or failed: {stages}. Why: “rag --debug retrieve …”.").format(
                stages=stages
            )
        )


def _panel(rank: int, result: "RetrievalResult") -> "Panel":
    from rich.panel import Panel
    from rich.text import Text

    from rag_resources.retrieval.notices import parts_in_words

    score = told(_("{score:.2f} of 1").format(score=result.score))
    created = told_day(result.created_at) if result.created_at else ""
    heading = (f"{rank}", score, created, clean(result.label))
    where = parts_in_words(result.place.places) if result.place else ""
    name = "" if result.external_id == result.label else clean(result.external_id)
    below = told(joined(" · ", filter(None, (where, name, "+".join(result.lists)))))
    return Panel(
        _passage(result),
        title=Text(" · ".join(filter(None, heading)), no_wrap=True, overflow="ellipsis"),
        title_align="left",
        subtitle=Text(clean(below), style="dim", no_wrap=True, overflow="ellipsis"),
        subtitle_align="right",
    )


def _passage(result: "RetrievalResult") -> "Text":
    """Show the match inside its context, its best sentences underlined or between marks.

    Of a long text, the part around the best sentences is shown, without Markdown's own marks.
    """
    from rich.text import Text

    from rag_resources.core.blocks import read

    text = clean(result.expanded_content)
    start, end = result.matched_bounds
    if result.matched_window:
        offset = start - result.start_char
        best_start, best_end = (own + offset for own in result.matched_window)
    else:
        best_start, best_end = start, end
    first = max(0, best_start - _LEAD_CHARS) if len(text) > SHOWN_CHARS else 0
    last = min(len(text), first + SHOWN_CHARS)
    reading = read(text)
    marks = not sys.stdout.isatty()

    def part(begin: int, until: int) -> str:
        return reading.shown(max(begin, first), min(until, last))

    return Text.assemble(
        "…" if first else "",
        (part(0, start), "dim"),
        (part(start, best_start), "bold"),
        "▸" if marks else "",
        (part(best_start, best_end), "bold underline"),
        "◂" if marks else "",
        (part(best_end, end), "bold"),
        (part(end, len(text)), "dim"),
        "…" if last < len(text) else "",
    )
