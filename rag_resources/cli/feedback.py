"""`rag feedback` and `rag answers`: what readers say of answers, and the answers given."""

from typing import TYPE_CHECKING, Annotated

import typer

from rag_resources.cli.output import (
    JsonOption,
    LimitOption,
    clean,
    print_table,
    say,
    told,
    told_day,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.languages.messages import _, joined

if TYPE_CHECKING:
    from rag_resources.answers.citing import CitationNow
    from rag_resources.application.answer_log import ShownAnswer

ID_CHARS = 8
"""Characters shown of an id; any beginning of it is accepted."""
SHOWN_ANSWERS = 20

AnswerId = Annotated[
    str,
    typer.Argument(metavar="RESPUESTA", help=_("The identifier of the answer, or its beginning.")),
]

app = group("answers", _("The answers that were given."))


def feedback(
    answer_id: AnswerId,
    verdict: Annotated[
        str, typer.Argument(metavar="up|down", help=_("up if it is good, down if not."))
    ],
    citation: Annotated[
        int | None,
        typer.Option(
            "--citation",
            metavar="N",
            help=_("The number of a citation; without it the whole answer."),
        ),
    ] = None,
    comment: Annotated[
        str, typer.Option("--comment", metavar="TEXTO", help=_("Why; it is stored."))
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
    say(_("Noted."))


@command(app, "list", _("The last answers, with what was said of them."))
def list_answers(limit: LimitOption = SHOWN_ANSWERS, as_json: JsonOption = False) -> None:
    """List the latest answers."""
    with application() as opened:
        found = opened.answer_log.latest(limit=limit or SHOWN_ANSWERS)
    if as_json:
        write_json({"answers": [own.to_json() for own in found]})
        return
    columns = (
        *(_("Id"), _("Date (UTC)"), _("Question")),
        *(_("Outcome"), _("Citations"), _("Opinions")),
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


@command(app, "show", _("An answer, with its citations as the notes are today."))
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
        say(_("Searched: “{searched}”").format(searched=answer.searched))
    say(
        _("{moment} · {outcome} · {configuration} · {answerer}").format(
            moment=f"{answer.asked_at:%Y-%m-%d %H:%M %Z}",
            outcome=_OUTCOMES[answer.outcome],
            configuration=answer.configuration or "–",
            answerer=answer.answerer,
        )
    )
    for sentence in answer.sentences or ():
        say(clean(sentence))
    for own in sorted(shown.citations, key=lambda each: each.cited.number):
        say(_("[{number}] {source}").format(number=own.cited.number, source=_citation(own)))
        if own.text is not None:
            say(f"    {' '.join(own.text.split())}")
    for given in shown.feedback:
        what = (
            told(_("The answer"))
            if given.citation is None
            else _("The citation {citation}").format(citation=given.citation)
        )
        verdict = _VERDICTS[given.verdict.value]
        comment = f": {given.comment}" if given.comment else ""
        say(joined("", (what, " ", verdict, comment)))


def _citation(own: "CitationNow") -> str:
    from rag_resources.retrieval.notices import parts_in_words

    if own.state == "gone":
        return told(_("the note no longer exists"))
    parts = [clean(own.label)]
    if own.created_at:
        parts.append(told_day(own.created_at))
    if own.state == "edited":
        parts.append(_("the note was edited since it was cited"))
        return joined(" · ", parts)
    if where := parts_in_words(own.places):
        parts.append(where)
    parts.append(_("characters {start}–{end}").format(start=own.cited.start, end=own.cited.end))
    return joined(" · ", parts)


_OUTCOMES = {
    "answered": _("answered"),
    "missed": _("no answer"),
    "withheld": _("withheld"),
    "failed": _("failed"),
}
_VERDICTS = {"up": _("good"), "down": _("not good")}
