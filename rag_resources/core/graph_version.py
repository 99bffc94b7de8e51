"""The parts of the causal graph, and the versions of the rules that make them.

A version is stored with its part; if it changes, the part is made anew from all notes. It covers
the rules of `languages/es/rules/graph.toml`, the result for a probe, and `REVISION`. Raise
`REVISION` by 1 after a change of `core.mentions` or `core.causal` that does not change the probe's
result.
"""

from dataclasses import asdict, replace
from enum import StrEnum
from functools import cache

from rag_resources.core.causal import find_statements
from rag_resources.core.chunking_version import algorithm
from rag_resources.core.configuration import canonical_hash
from rag_resources.core.mentions import find_mentions
from rag_resources.core.rules import rules

REVISION = 1

_PROBE = """El martes vino la Sra. Castelló con Rosa Martí, de La Fe, porque el ascensor no va.
Por eso se firmó el 3 de marzo de 2025. Rosa dijo: «Bernat avisó, así que lo sabíamos». Debido a la
lluvia, hubo goteras. El corte provocó una avería en Cal Viva, ya que nadie cerró la llave."""


class GraphPart(StrEnum):
    """A part of the graph, by the name of its asset."""

    MENTIONS = "mentions"
    STATEMENTS = "causal_statements"


@cache
def rules_version(part: GraphPart) -> str:
    """Return the version of the rules that make a part."""
    found = rules().graph
    if part is GraphPart.MENTIONS:
        ours = asdict(replace(found, markers=[]))
        result = [str(item) for item in find_mentions("", [_PROBE], ["cal-viva"])[0]]
    else:
        ours = {"markers": [asdict(marker) for marker in found.markers], "algorithm": algorithm()}
        result = [str(item) for item in find_statements(_PROBE)]
    return canonical_hash({"revision": REVISION, "rules": ours, "probe": result})
