"""`rag retrieve`: shows the passages that answer a question. See `cli.answer`."""

from typing import TYPE_CHECKING

import typer

from rag_resources.cli.answer import show
from rag_resources.cli.output import JsonOption, working, write_json
from rag_resources.cli.reader import told
from rag_resources.cli.search_options import (
    ConfigOption,
    LanguageOption,
    MetadataOption,
    ModelOption,
    NoteOption,
    QuestionArgument,
    SetOption,
    SinceOption,
    SourceOption,
    StrategyOption,
    TagOption,
    TopKOption,
    UntilOption,
    search_of,
)
from rag_resources.cli.session import application
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.application.wiring import Answered
    from rag_resources.core.texts import Template


def retrieve(
    question: QuestionArgument,
    config: ConfigOption = None,
    strategy: StrategyOption = None,
    top_k: TopKOption = None,
    model: ModelOption = None,
    changed: SetOption = None,
    source: SourceOption = None,
    tag: TagOption = None,
    notes: NoteOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    metadata: MetadataOption = None,
    language: LanguageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question with passages."""
    search = search_of(
        question,
        config=config,
        strategy=strategy,
        model=model,
        changed=changed,
        top_k=top_k,
        language=language,
        source=source,
        tag=tag,
        notes=notes,
        since=since,
        until=until,
        metadata=metadata,
    )
    with application() as app, working(Message.CLI_LOADING):
        answered = app.retrieve(search.question, **search.arguments(app.notes))
        default = app.settings.answer_language
    response = answered.response.reworded(told)
    if as_json:
        write_json(answered.origin_to_json() | response.to_json())
    else:
        show(
            response,
            answered.configuration,
            filtered=search.is_filtered,
            score=_score_template(answered),
            by_words=answered.config is not None and not answered.config.uses_vectors,
            language=language or default,
        )
    if response.error:
        raise typer.Exit(1)


def _score_template(answered: "Answered") -> "Template":
    """Return how scores are shown: reciprocal ranks are small, min-max values are relative.

    A single list keeps its own scores, which are of 1; each sub-question has lists of its own.
    """
    config, results = answered.config, answered.response.results
    if config is None or not results:
        return Message.RETRIEVED_SCORE
    lists = {name for result in results for name in result.retrieval_method.split("+")}
    asked = answered.response.transformed
    is_fused = len(lists) > 1 or bool(asked and (asked.sub_queries or asked.hypothetical_answer))
    if config.fusion.method == "weighted" and is_fused:
        return Message.RETRIEVED_RELATIVE
    most = sum(own.weight for own in config.weighted.values()) / (config.fusion.rank_constant + 1)
    is_rank = config.fusion.method == "rrf" and results[0].score <= most
    return Message.RETRIEVED_RANKS if is_rank else Message.RETRIEVED_SCORE
