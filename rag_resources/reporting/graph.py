"""The causal graph in the report: what each month added, and the surroundings of one name."""

from typing import TYPE_CHECKING

from rag_resources.core.messages import Message
from rag_resources.reporting.tables import Cell, PageTable

if TYPE_CHECKING:
    from rag_resources.graph.people import Neighbourhood, Overview

SHOWN_MONTHS = 24
_TOLD = 5


def graph_months_table(graph: "Overview") -> PageTable:
    """Return what the newest months added, newest first."""
    rows = [
        (
            Cell(f"{item.month:%Y-%m}"),
            Cell(str(item.notes)),
            Cell(str(item.mentions)),
            Cell(f"{item.mentions / item.notes:.1f}"),
            Cell(str(item.statements)),
        )
        for item in reversed(graph.months[-SHOWN_MONTHS:])
    ]
    return PageTable(
        Message.REPORT_GRAPH_MONTHS,
        (
            Message.COLUMN_MONTH,
            Message.COLUMN_NOTES,
            Message.COLUMN_MENTIONS,
            Message.COLUMN_MENTIONS_PER_NOTE,
            Message.COLUMN_STATEMENTS,
        ),
        tuple(rows),
    )


def graph_in_words(found: "Neighbourhood") -> str:
    """Say what the drawing shows."""
    return Message.REPORT_GRAPH_DESCRIPTION.format(
        names=", ".join(name for name, _ in found.company[:_TOLD]),
        causes="; ".join(f"{item.cause} → {item.effect}" for item in found.statements[:_TOLD]),
    )
