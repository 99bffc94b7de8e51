"""A language model reads notes for the graph; only what stands in them counts."""

from collections.abc import Sequence
from uuid import UUID

from rag_resources.core.causal import CausalStatement, Relation
from rag_resources.core.graph_version import GraphPart, rules_version
from rag_resources.graph.extraction import Extractor, extractor_version
from rag_resources.store.graph import ChunkToRead, NoteToRead
from tests.language_models import ScriptedModel

TEXT = (
    "El 3 de marzo de 2025 vi a Amparo Castelló. Castelló cerró el bar\nde Orriols: nadie pagaba."
)


def statements(model: ScriptedModel, *texts: str) -> list[Sequence[CausalStatement]]:
    """What a model finds in a note of some chunks."""
    chunks = tuple(ChunkToRead(UUID(int=n), text) for n, text in enumerate(texts, start=1))
    note = NoteToRead(UUID(int=9), "ana", "", (), chunks)
    return list(Extractor(model).extract(GraphPart.STATEMENTS, note).statements.values())


def test_statements_count_if_cause_and_effect_stand_in_the_chunk() -> None:
    said = [
        {
            "cause": "nadie pagaba.",
            "effect": "castelló cerró el bar de Orriols",
            "marker": ":",
            "relation": "CAUSES",
        },
        {"cause": "nadie pagaba", "effect": "se fue la luz", "relation": "CAUSES"},
        {"cause": "nadie", "effect": "Castelló cerró el bar", "relation": "CAUSES"},
        {"cause": "cerró el bar", "effect": "el bar", "relation": "TRIGGERS"},
    ]
    model = ScriptedModel({"statements": said}, {"statements": []}, name="ollama:prueba")
    ((found,), nothing) = statements(model, TEXT, "Nada.")
    assert nothing == []
    assert TEXT[found.cause.start : found.cause.end] == "nadie pagaba"
    assert TEXT[found.effect.start : found.effect.end] == "Castelló cerró el bar\nde Orriols"
    assert (found.relation, found.marker_name) == (Relation.CAUSES, "ollama:prueba")
    assert found.marker.start == found.marker.end == found.effect.start
    assert 0 <= found.confidence <= 1


def test_of_several_places_the_nearest_count() -> None:
    text = "Llovía mucho. Hubo una gotera. Hubo una gotera porque llovía mucho."
    said = {
        "cause": "Llovía mucho",
        "effect": "Hubo una gotera",
        "marker": "porque",
        "relation": "TRIGGERS",
    }
    model = ScriptedModel({"statements": [said, said]})
    ((found,),) = statements(model, text)
    assert text[found.marker.start : found.marker.end] == "porque"
    assert (found.cause.start, found.effect.start) == (0, 14)


def test_another_model_is_another_version_of_the_statements_only() -> None:
    part = GraphPart.STATEMENTS
    assert len({extractor_version(part, model) for model in (None, "ollama:a", "ollama:b")}) == 3
    assert extractor_version(part, None) == rules_version(part)
    named = Extractor(ScriptedModel({}, name="ollama:a"))
    assert named.version(part) == extractor_version(part, "ollama:a")
    assert named.version(GraphPart.MENTIONS) == rules_version(GraphPart.MENTIONS)
