"""`rag retrieve`: shows the passages that answer a question. See `cli.answer`."""

from typing import Annotated

import typer

from rag_resources.cli.answer import show
from rag_resources.cli.output import JsonOption, clean, working, write_json
from rag_resources.cli.reader import answer_in, told
from rag_resources.cli.search_options import (
    ConfigOption,
    LanguageOption,
    MetadataOption,
    NoteOption,
    QuestionArgument,
    SetOption,
    SinceOption,
    SourceOption,
    TagOption,
    TopKOption,
    UntilOption,
    assignments,
    filters_of,
    given,
)
from rag_resources.cli.session import application, read_settings
from rag_resources.core.messages import Message


def retrieve(
    question: QuestionArgument,
    config: ConfigOption = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", metavar="ESTRATEGIA", help=Message.HELP_STRATEGY)
    ] = None,
    top_k: TopKOption = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODELO", help=Message.HELP_MODEL)
    ] = None,
    changed: SetOption = None,
    source: SourceOption = None,
    tag: TagOption = None,
    note_id: NoteOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    metadata: MetadataOption = None,
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question with passages."""
    from rag_resources.core.configuration import nested_fields
    from rag_resources.retrieval.request import check_query

    answer_in(read_settings().answer_language if language is None else language)
    fields = {**assignments(changed, "--set"), **given(strategy=strategy, model=model)}
    filters = filters_of(
        source=source, tag=tag, note_id=note_id, since=since, until=until, metadata=metadata
    )
    query = clean(question)
    check_query(query)  # Before the database is started.
    with application() as app, working(Message.CLI_LOADING):
        answered = app.retrieve(
            query,
            configuration=config,
            overrides=nested_fields(fields),
            top_k=top_k,
            filters=filters,
            language=language,
        )
    response = answered.response.reworded(told)
    if as_json:
        write_json(response.to_json())
    else:
        show(response, answered.configuration, filtered=not filters.is_empty)
    if response.error:
        raise typer.Exit(1)
