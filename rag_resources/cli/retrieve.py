"""`rag retrieve`: a question and the passages that answer it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import (
    JsonOption,
    clean,
    console,
    note,
    say,
    working,
    write_json,
)
from rag_resources.cli.session import DEFAULT_CONFIGURATION, application
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rich.text import Text

    from rag_resources.application import Application
    from rag_resources.core.configuration import RetrievalConfig
    from rag_resources.core.types import RetrievalResponse, RetrievalResult

SHOWN_CHARS = 1_500
"""Characters of a passage with its context; JSON has all of them."""

_LEAD_CHARS = 200
_MOST_RESULTS = 50


def retrieve(
    question: Annotated[str, typer.Argument(metavar="PREGUNTA", help=Message.HELP_QUESTION)],
    config: Annotated[
        str | None, typer.Option("--config", metavar="NOMBRE", help=Message.HELP_CONFIG)
    ] = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", metavar="ESTRATEGIA", help=Message.HELP_STRATEGY)
    ] = None,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="N", help=Message.HELP_TOP_K)
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODELO", help=Message.HELP_MODEL)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question."""
    from rag_resources.core.configuration import with_overrides
    from rag_resources.retrieval.pipeline import check_query

    query = clean(question)
    check_query(query)
    with application() as app:
        name, base = _configuration(app, config)
        chosen = with_overrides(base, _overrides(base, strategy, top_k, model))
        with working(Message.CLI_LOADING):
            response = app.pipeline.retrieve(query, chosen)
    if as_json:
        write_json(response.to_json())
    else:
        _show(response, name)


def _configuration(app: "Application", name: str | None) -> "tuple[str, RetrievalConfig]":
    """Choose the configuration named, else the one that serves, else the default."""
    from rag_resources.core.configuration import RetrievalConfig, parse_retrieval
    from rag_resources.store.evaluations import current_promotion

    if name:
        return name, app.configuration(name).retrieval
    with app.database.transaction() as connection:
        promotion = current_promotion(connection)
    if promotion is None:
        return DEFAULT_CONFIGURATION, app.configuration(DEFAULT_CONFIGURATION).retrieval
    label = Message.RETRIEVED_CONFIG_PROMOTED.format(name=promotion.configuration)
    try:
        return label, parse_retrieval(promotion.config, origin=label)
    except InvalidConfigurationError:
        note(Message.CONFIGURATION_FALLBACK)
        return Message.RETRIEVED_CONFIG_DEFAULTS, RetrievalConfig()


def _overrides(
    base: "RetrievalConfig", strategy: str | None, top_k: int | None, model: str | None
) -> dict[str, Any]:
    retrieval = None
    if top_k and base.top_k.retrieval < top_k <= _MOST_RESULTS:
        retrieval = top_k  # as many candidates as results
    return {
        "strategy": strategy,
        "model": model,
        "top_k": {"final": top_k, "retrieval": retrieval},
    }


def _show(response: "RetrievalResponse", configuration: str) -> None:
    from rich.panel import Panel
    from rich.text import Text

    for message in response.messages:
        note(message)
    if not response.results:
        say(Message.RETRIEVED_NOTHING)
    screen = console()
    for rank, result in enumerate(response.results, start=1):
        created = f"{result.created_at:%Y-%m-%d}" if result.created_at else ""
        heading = (f"{rank}", f"{result.score:.3f}", created, clean(result.title))
        screen.print(
            Panel(
                _passage(result, marks=not screen.is_terminal),
                title=Text(" · ".join(part for part in heading if part)),
                title_align="left",
                subtitle=Text(result.retrieval_method, style="dim"),
                subtitle_align="right",
            )
        )
    stages = " · ".join(f"{name} {elapsed:.0f}" for name, elapsed in response.stages.items())
    say(
        Message.RETRIEVED_LATENCY.format(
            count=len(response.results),
            total=response.latency_ms,
            stages=stages,
            configuration=configuration,
            strategy=response.strategy,
            model=response.model,
        )
    )


def _passage(result: "RetrievalResult", *, marks: bool) -> "Text":
    """Show what matched in its context: bright on a terminal, else between marks."""
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
