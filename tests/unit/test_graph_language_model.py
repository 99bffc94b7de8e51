"""A language model reads notes for the graph; only what stands in them counts."""

from uuid import UUID

import pytest

from rag_resources.core.causal import Relation
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.graph_version import GraphPart, rules_version
from rag_resources.core.mentions import EntityKind
from rag_resources.graph.extractors import RulesExtractor, build_extractor, extractor_version
from rag_resources.graph.language_model import LanguageModelExtractor
from rag_resources.store.graph import ChunkToRead, NoteToRead
from tests.language_models import ScriptedModel

TEXT = (
    "El 3 de marzo de 2025 vi a Amparo Castelló. Castelló cerró el bar\nde Orriols: nadie pagaba."
)


def note(*texts: str, tags: tuple[str, ...] = ()) -> NoteToRead:
    """A note of some chunks."""
    chunks = (ChunkToRead(UUID(int=n), text) for n, text in enumerate(texts, start=1))
    return NoteToRead(UUID(int=9), "ana", "", tags, tuple(chunks))


def test_names_count_where_they_stand_and_the_longest_wins() -> None:
    names = ["Castelló", "amparo  castelló", "Bernat", "", "3 de marzo de 2025", "¡!"]
    model = ScriptedModel({"names": names}, {"names": ["Rosa"]})
    found = LanguageModelExtractor(model).mentions(
        note(TEXT, "<b>Rosa</b> y Rosario.", tags=("bar",))
    )
    assert [(m.kind, m.key) for m in found[0]] == [
        (EntityKind.TAG, "bar"),
        (EntityKind.DATE, "2025-03-03"),
        (EntityKind.NAME, "amparo castello"),
        (EntityKind.NAME, "castello"),
    ]
    assert all(TEXT[m.span.start : m.span.end] == m.name for m in found[0][1:])
    assert [m.name for m in found[1]] == ["bar", "Rosa"]
    assert "<b>" not in model.calls[1].prompt.replace("<pasaje>", "")


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
    ((found,), nothing) = LanguageModelExtractor(model).statements(note(TEXT, "Nada."))
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
    ((found,),) = LanguageModelExtractor(model).statements(note(text))
    assert text[found.marker.start : found.marker.end] == "porque"
    assert (found.cause.start, found.effect.start) == (0, 14)


def test_the_settings_choose_what_reads() -> None:
    model = ScriptedModel({"names": []}, name="ollama:prueba")
    assert isinstance(build_extractor("rules", model), RulesExtractor)
    chosen = build_extractor("llm", model)
    assert (chosen.name, chosen.is_slow) == ("ollama:prueba", True)
    with pytest.raises(InvalidParameterError, match="LLM_MODEL"):
        build_extractor("llm", None)


@pytest.mark.parametrize("part", GraphPart)
def test_another_extractor_model_or_prompt_is_another_version(part: GraphPart) -> None:
    versions = {
        extractor_version("rules", part, "ollama:a"),
        extractor_version("llm", part, "ollama:a"),
        extractor_version("llm", part, "ollama:b"),
        extractor_version("llm", part, None),
    }
    assert len(versions) == 4
    assert rules_version(part) in versions
    named = LanguageModelExtractor(ScriptedModel({}, name="ollama:a"))
    assert named.version(part) == extractor_version("llm", part, "ollama:a")
