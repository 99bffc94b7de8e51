"""`rag feedback` and `rag answers`: what readers say of answers, and the answers given."""

from typing import TYPE_CHECKING, Annotated

import typer

from rag_resources.cli.output import JsonOption, clean, print_table, say, told, told_day, write_json
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.messages import Message
from rag_resources.core.texts import joined

if TYPE_CHECKING:
    from rag_resources.answers.citing import CitationNow
    from rag_resources.application.answer_log import ShownAnswer

ID_CHARS = 8
"""Characters shown of an id; any beginning of it is accepted."""
SHOWN_ANSWERS = 20

AnswerId = Annotated[str, typer.Argument(metavar="RESPUESTA", help=Message.HELP_ANSWER_ID)]

app = group("answers", Message.HELP_ANSWERS)


def feedback(
    answer_id: AnswerId,
    verdict: Annotated[str, typer.Argument(metavar="up|down", help=Message.HELP_VERDICT)],
    citation: Annotated[
        int | None, typer.Option("--citation", metavar="N", help=Message.HELP_FEEDBACK_CITATION)
    ] = None,
    comment: Annotated[
        str, typer.Option("--comment", metavar="TEXTO", help=Message.HELP_FEEDBACK_COMMENT)
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Say that an answer, or one of its citations, is right or wrong."""
    with application() as opened:
        given = opened.answer_log.give_feedback(
            answer_id, verdict, citation=citation, comment=comment
        )
    if as_json:
        write_json(given.to_json())
        return
    say(
        Message.FEEDBACK_STORED.format(answer_id=str(given.answer_id)[:ID_CHARS])
        if citation is None
        else Message.FEEDBACK_CITATION_STORED.format(
            answer_id=str(given.answer_id)[:ID_CHARS], citation=citation
        )
    )


@command(app, "list", Message.HELP_ANSWERS_LIST)
def list_answers(
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help=Message.HELP_GOLDEN_LIMIT)
    ] = SHOWN_ANSWERS,
    as_json: JsonOption = False,
) -> None:
    """List the latest answers."""
    with application() as opened:
        found = opened.answer_log.latest(limit=limit)
    if as_json:
        write_json({"answers": [own.to_json() for own in found]})
        return
    columns = (
        Message.COLUMN_ID,
        Message.COLUMN_ASKED,
        Message.COLUMN_QUESTION,
        Message.COLUMN_OUTCOME,
        Message.COLUMN_CITATIONS,
        Message.COLUMN_VERDICTS,
    )
    rows = [
        (
            str(own.answer_id)[:ID_CHARS],
            f"{own.asked_at:%Y-%m-%d %H:%M}",
            own.question or "–",
            _OUTCOMES[own.outcome],
            str(own.citations),
            f"+{own.up} −{own.down}" if own.up or own.down else "–",
        )
        for own in found
    ]
    print_table(columns, rows, prose=True)


@command(app, "show", Message.HELP_ANSWERS_SHOW)
def show(answer_id: AnswerId, as_json: JsonOption = False) -> None:
    """Show an answer that was given before, with its citations as the notes are now."""
    with application() as opened:
        shown = opened.answer_log.show(answer_id)
    if as_json:
        write_json(shown.to_json())
    else:
        _show(shown)


def _show(shown: "ShownAnswer") -> None:
    answer = shown.answer
    say(f"{answer.question or '–'}")
    if answer.searched:
        say(Message.ASKED_SEARCHED.format(searched=answer.searched))
    say(
        Message.ANSWER_GIVEN.format(
            moment=f"{answer.asked_at:%Y-%m-%d %H:%M %Z}",
            outcome=_OUTCOMES[answer.outcome],
            configuration=answer.configuration or "–",
            answerer=answer.answerer,
        )
    )
    for sentence in answer.sentences or ():
        say(clean(sentence))
    for own in sorted(shown.citations, key=lambda each: each.cited.number):
        say(Message.ANSWER_SOURCE.format(number=own.cited.number, source=_citation(own)))
        if own.text is not None:
            say(f"    {' '.join(own.text.split())}")
    for given in shown.feedback:
        what = (
            told(Message.FEEDBACK_OF_ANSWER)
            if given.citation is None
            else Message.FEEDBACK_OF_CITATION.format(citation=given.citation)
        )
        verdict = _VERDICTS[given.verdict.value]
        comment = f": {given.comment}" if given.comment else ""
        say(joined("", (what, " ", verdict, comment)))


def _citation(own: "CitationNow") -> str:
    from rag_resources.retrieval.notices import parts_in_words

    if own.state == "gone":
        return told(Message.CITATION_GONE)
    parts = [clean(own.label)]
    if own.created_at:
        parts.append(told_day(own.created_at))
    if own.state == "edited":
        parts.append(Message.CITATION_EDITED)
        return joined(" · ", parts)
    if where := parts_in_words(own.places):
        parts.append(where)
    parts.append(Message.ANSWER_RANGE.format(start=own.cited.start, end=own.cited.end))
    return joined(" · ", parts)


_OUTCOMES = {
    "answered": Message.OUTCOME_ANSWERED,
    "missed": Message.OUTCOME_MISSED,
    "withheld": Message.OUTCOME_WITHHELD,
    "failed": Message.OUTCOME_FAILED,
}
_VERDICTS = {"up": Message.VERDICT_UP, "down": Message.VERDICT_DOWN}
