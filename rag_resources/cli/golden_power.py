"""`rag golden power`: how small a difference the golden dataset can detect."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, console, note, say, table, write_json
from rag_resources.cli.session import application
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.core.power import GoldenPower, PairPower

Difference = Annotated[
    float,
    typer.Option("--difference", metavar="D", help=Message.HELP_GOLDEN_DIFFERENCE),
]


def power(difference: Difference = 0.05, as_json: JsonOption = False) -> None:
    """Say which differences the questions can detect."""
    with application() as opened:
        found = opened.evaluations.power(difference=difference)
    if as_json:
        write_json(_as_json(found))
    else:
        _show(found)


def _show(found: "GoldenPower") -> None:
    from rag_resources.core.comparison import ALPHA
    from rag_resources.core.power import POWER, fewest_discordant, smallest_p_values

    columns = [
        Message.COLUMN_CONFIGURATION,
        Message.COLUMN_DISCORDANT,
        "Hit_Rate@10",
        Message.COLUMN_SPREAD,
        "MRR@10",
        Message.COLUMN_MORE.format(difference=found.difference, metric="Hit_Rate@10"),
        Message.COLUMN_MORE.format(difference=found.difference, metric="MRR@10"),
    ]
    title = Message.POWER_TITLE.format(queries=found.queries, power=100 * POWER)
    rows = [_row(found, pair) for pair in found.pairs]
    console().print(table(columns, rows, title=title))
    if found.reference is None:
        note(Message.POWER_ASSUMED)
    else:
        say(Message.POWER_OBSERVED.format(reference=found.reference))
        measured = [pair.resolution.discordance.queries for pair in found.pairs]
        if min(measured) < found.queries:
            say(Message.POWER_MEASURED_ON.format(fewest=min(measured), queries=found.queries))
        if found.same:
            names = ", ".join(found.same)
            say(Message.POWER_SAME.format(reference=found.reference, names=names))
    say(Message.POWER_METHOD.format(level=100 * ALPHA))
    mcnemar, randomization = smallest_p_values(found.queries)
    say(
        Message.POWER_SMALLEST.format(
            mcnemar=mcnemar, randomization=randomization, fewest=fewest_discordant(), level=ALPHA
        )
    )
    if found.queries < fewest_discordant():
        note(Message.POWER_NONE)


def _row(found: "GoldenPower", pair: "PairPower") -> list[str]:
    resolution = pair.resolution
    needed = (pair.requirement.hit_rate, pair.requirement.mrr)
    return [
        pair.configuration or Message.POWER_ASSUMPTION,
        f"{resolution.discordance.share:.3f}",
        _difference(resolution.hit_rate),
        f"{resolution.discordance.spread:.3f}",
        _difference(resolution.mrr),
        *(_more(found.queries, questions) for questions in needed),
    ]


def _difference(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _more(queries: int, needed: int | None) -> str:
    return Message.POWER_TOO_MANY if needed is None else str(max(0, needed - queries))


def _as_json(found: "GoldenPower") -> dict[str, Any]:
    from rag_resources.core.comparison import ALPHA
    from rag_resources.core.power import POWER, fewest_discordant, smallest_p_values

    mcnemar, randomization = smallest_p_values(found.queries)
    return {
        "queries": found.queries,
        "level": ALPHA,
        "power": POWER,
        "reference": found.reference,
        "difference": found.difference,
        "smallestPValue": {"hitRateAt10": mcnemar, "mrrAt10": randomization},
        "fewestDiscordant": fewest_discordant(),
        "same": list(found.same),
        "pairs": [_pair(found, pair) for pair in found.pairs],
    }


def _pair(found: "GoldenPower", pair: "PairPower") -> dict[str, Any]:
    resolution, needed = pair.resolution, pair.requirement
    return {
        "configuration": pair.configuration,
        "observedQueries": resolution.discordance.queries,
        "discordance": resolution.discordance.share,
        "spread": resolution.discordance.spread,
        "smallestDifference": {"hitRateAt10": resolution.hit_rate, "mrrAt10": resolution.mrr},
        "moreQueries": {
            "hitRateAt10": needed.hit_rate and max(0, needed.hit_rate - found.queries),
            "mrrAt10": needed.mrr and max(0, needed.mrr - found.queries),
        },
    }
