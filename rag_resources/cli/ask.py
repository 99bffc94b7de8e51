"""`rag ask`: answers a question with sentences of the notes, each with its citation."""

from typing import TYPE_CHECKING

import typer

from rag_resources.cli.answer import say_confidence, warn_of
from rag_resources.cli.output import JsonOption, clean, say, working, write_json
from rag_resources.cli.reader import told, told_day
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
from rag_resources.core.texts import joined

if TYPE_CHECKING:
    from rag_resources.core.citations import Citation, CitedAnswer

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def ask(
    question: QuestionArgument,
    config: ConfigOption = None,
    strategy: StrategyOption = None,
    top_k: TopKOption = None,
    model: ModelOption = None,
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
    """Answer a question with cited sentences."""
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
        note_id=note_id,
        since=since,
        until=until,
        metadata=metadata,
    )
    with application() as app, working(Message.CLI_LOADING):
        asked = app.answers.ask(search.question, **search.arguments)
    asked = asked.reworded(told)
    response = asked.retrieval.response
    if as_json:
        write_json(asked.to_json())
    else:
        warn_of(response)
        if not response.error:
            _show(asked.answer)
            if asked.answer.found:
                say_confidence(response)
    if response.error:
        raise typer.Exit(1)


def _show(answer: "CitedAnswer") -> None:
    """Write the sentences with their numbers, and the sources below."""
    from rag_resources.core.citations import numbered

    if not answer.found:
        say(answer.notice)
        return
    numbers = numbered(answer.sentences)
    for sentence in answer.sentences:
        marks = " ".join(str(numbers[own]).translate(_SUPERSCRIPTS) for own in sentence.citations)
        say(f"{clean(sentence.text)} {marks}")
    say("")
    say(f"{told(Message.ANSWER_SOURCES)}:")
    for citation, number in numbers.items():
        say(Message.ANSWER_SOURCE.format(number=number, source=_source(citation)))
    say(Message.ANSWER_BY.format(answerer=answer.answerer))


def _source(citation: "Citation") -> str:
    """Say which note is cited, of what day, and where in it."""
    from rag_resources.retrieval.notices import place_in_words

    parts = [clean(citation.title) or str(citation.note_id)]
    if citation.created_at:
        parts.append(told_day(citation.created_at))
    if citation.place:
        parts.append(place_in_words(citation.place))
    parts.append(Message.ANSWER_RANGE.format(start=citation.start, end=citation.end))
    return joined(" · ", parts)
