"""Why evaluations are not current, said once on the report page and referred to elsewhere.

The reasons of an evaluation are in `core.evidence`; the tables that refer to them in
`reporting.tables`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rag_resources.core.messages import Message
from rag_resources.reporting.data import EvaluationReport


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some evaluations are not current.

    Attributes:
        number: From 1, in the order of the page.
        explanation: The reasons in one line.
        names: The configurations whose last evaluation it concerns.
    """

    number: int
    explanation: str
    names: tuple[str, ...]

    @property
    def label(self) -> str:
        """What stands for the explanation everywhere but in the list of reasons."""
        return Message.REPORT_REASON.format(number=self.number)

    @property
    def anchor(self) -> str:
        """The id of its item in the list."""
        return f"reason-{self.number}"


def reasons_of(report: EvaluationReport) -> tuple[Reason, ...]:
    """Return why the last evaluations are not current.

    Equal ones are one reason, in the order of the configurations.
    """
    concerned: dict[str, list[str]] = {}
    for item in report.configurations:
        if not item.gates.evidence.is_current:
            concerned.setdefault(item.gates.evidence.explanation, []).append(item.name)
    return tuple(
        Reason(number, explanation, tuple(names))
        for number, (explanation, names) in enumerate(concerned.items(), start=1)
    )


def referred(said: str, reasons: Sequence[Reason]) -> Markup:
    """Return a text in which a link stands for each explanation of the list.

    Args:
        said: Any text; it is escaped.
        reasons: Those of the list.
    """
    links = {
        reason.explanation: Markup('<a href="#{}">{}</a>').format(reason.anchor, reason.label)
        for reason in reasons
    }
    # Only whole explanations: one may be the beginning or the end of a longer one.
    known = "|".join(map(re.escape, links))
    parts = re.split(rf"(?:^|(?<=: ))({known})(?=\. |$)", said) if links else [said]
    return Markup().join(links.get(part, part) for part in parts)
