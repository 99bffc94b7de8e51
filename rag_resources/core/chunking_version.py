"""The version of the chunking algorithm: sentence rules, tokenizer and contextual prefix.

`chunking_hash` is stored with every chunked note. A note with another hash is chunked again, and
the months with such notes are stale. The hash covers the settings and the algorithm:

- the data: `languages/es/rules/sentences.toml`, `prefix.toml`, and the limits below;
- the result for `_PROBE`, so a change of the code counts too;
- `REVISION`. Raise it by 1 after a change of the code that does not change the probe's result.

After an intended change, update the current algorithm in `tests/unit/test_versions.py`.
"""

from dataclasses import asdict
from functools import cache
from typing import Any
from uuid import UUID

from rag_resources.core.blocks import read
from rag_resources.core.chunking import chunk_note
from rag_resources.core.configuration import ChunkingConfig, canonical_hash
from rag_resources.core.contextual import (
    HEADER_CHARS,
    SUMMARY_CHARS,
    TAGS_CHARS,
    TOPIC_CHARS,
    contextual_prefix,
    contextual_text,
    contextual_topics,
    summarize,
)
from rag_resources.core.rules import rules
from rag_resources.core.text import CHARS_PER_TOKEN

REVISION = 2
"""Revision of the code of `core.sentences`, `core.chunking` and `core.contextual`."""
STRUCTURE_REVISION = 1
"""Revision of the code of the strategy `structure`; `REVISION` counts for it, too."""

_PROBE = """# Acta del 3 de marzo

El Sr. Núñez llegó a las 9.30 h. con la Dra. A. Ruiz. ¿Quién más vino? ¡Nadie! «Vendré… quizá»,
dijo Ana. Costó 1.250,50 € aprox. y se pagó en mar. de 2024, etc. Véase la pág. 12 del vol. II.

- Primera tarea: revisar el contrato; segunda, avisar a EE. UU. y a la S. A. de siempre, porque el \
plazo acaba cuando acabe el mes y nadie lo ha firmado todavía, aunque Luis dijo que lo haría como \
siempre, sin leerlo, mientras los demás esperaban donde les dijeron, pero con prisa.
- https://ejemplo.es/una/direccion/muy/larga/que/no/tiene/espacios/y/no/cabe/en/un/fragmento/solo

Q\u00a0. "Nada", escribió. Cafe\u0301 y te\u0301 👩\u200d💻; fin"""
_STRUCTURE_PROBE = f"""{_PROBE}

Presupuesto

Mes\tImporte
Enero\t1.250,50 €
Febrero\t980,00 €
Marzo\t1.100,25 €

| Partida | Total |
|---|---|
| Luz | 30 |
| Gas | 40 |

Y nada más. Se aprobó por mayoría. Firmado en Madrid, a 3 de marzo."""
_STRUCTURE_PROBE_CONFIG = ChunkingConfig(
    strategy="structure", target=60, min=30, max=100, overlap=20
)
_PROBE_CONFIG = ChunkingConfig(max_tokens=24, overlap_tokens=6, min_tokens=8)


def chunking_hash(config: ChunkingConfig) -> str:
    """Return the hash of the chunking settings and algorithm."""
    made_by: dict[str, Any] = {"algorithm": algorithm()}
    if config.strategy == "structure":
        made_by["structure"] = structure_algorithm()
    return canonical_hash({**config.hashed, **made_by})


@cache
def structure_algorithm() -> str:
    """Return the version of the strategy `structure`, as `algorithm` does for `sentences`."""
    reading = read(_STRUCTURE_PROBE)
    chunks = chunk_note(UUID(int=0), _STRUCTURE_PROBE, _STRUCTURE_PROBE_CONFIG)
    return canonical_hash(
        {
            "revision": STRUCTURE_REVISION,
            "header": HEADER_CHARS,
            "probe": [
                [chunk.start_char, chunk.end_char, reading.columns_at(chunk.start_char)]
                for chunk in chunks
            ],
        }
    )


@cache
def algorithm() -> str:
    """Return the version of the algorithm, from its data and its result for a probe text."""
    chunks = chunk_note(UUID(int=0), _PROBE, _PROBE_CONFIG)
    summary = summarize("Acta", _PROBE)
    return canonical_hash(
        {
            "revision": REVISION,
            "sentences": asdict(rules().sentences),
            "prefix": asdict(rules().prefix),
            "limits": [CHARS_PER_TOKEN, SUMMARY_CHARS, TOPIC_CHARS, TAGS_CHARS],
            "probe": [
                [
                    chunk.start_char,
                    contextual_text(contextual_prefix(summary, chunks, index), chunk.content),
                    contextual_topics(summary, chunks, index, ("plan-piloto", "agua")),
                ]
                for index, chunk in enumerate(chunks)
            ],
        }
    )
