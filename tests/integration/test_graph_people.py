"""What people see of the graph and decide about it, also on the command line."""

from pathlib import Path

import pytest

from rag_resources.core.causal import Relation
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message
from rag_resources.database.pool import Database
from rag_resources.graph import links, people
from rag_resources.reporting.plots.neighbourhood import draw_neighbourhood
from tests.corpus import Draft
from tests.graph_corpus import GraphCorpus

LONG = ChunkingConfig(max_tokens=512, overlap_tokens=0, min_tokens=0)
DRAFTS = [
    Draft("Ayer vi a Amparo Castelló. Cerró la tienda porque Castelló lo pidió.", "Tienda"),
    Draft("Luego llamó Castelló, así que fui con Bernat a Orriols.", tags=("orriols",)),
    Draft("En casa de Bernat no había nadie."),
]


@pytest.fixture
def corpus(database: Database) -> GraphCorpus:
    made = GraphCorpus(database)
    made.fill(DRAFTS, LONG)
    made.read()
    return made


def test_the_neighbourhood_of_a_name(corpus: GraphCorpus, tmp_path: Path) -> None:
    found = corpus.run(lambda c: people.neighbourhood(c, "ana", "castello"))
    assert (found.entity.name, found.entity.kind) == ("Castelló", "name")
    assert [note.mentions for note in found.notes] == [1, 1]
    assert {name for name, _ in found.company} >= {"Bernat", "Orriols"}
    assert {(s.cause, s.relation, s.effect) for s in found.statements} == {
        ("Castelló lo pidió", "CAUSES", "Cerró la tienda"),
        ("llamó Castelló", "LEADS_TO", "fui con Bernat a Orriols"),
    }
    drawn = draw_neighbourhood(found)
    assert drawn.startswith(b"\x89PNG")
    assert len(drawn) > 5_000
    with pytest.raises(InvalidParameterError, match="ninguna entidad"):
        corpus.run(lambda c: people.neighbourhood(c, "ana", "Nadie"))
    with pytest.raises(InvalidParameterError):
        corpus.run(lambda c: people.neighbourhood(c, "luis", "Castelló"))


def test_aliases_are_suggested_confirmed_and_withdrawn(corpus: GraphCorpus) -> None:
    def suggested() -> set[tuple[str, str]]:
        found = corpus.run(lambda c: people.suggest_aliases(c, "ana", limit=9))
        return {(item.alias.name, item.entity.name) for item in found}

    assert ("Castelló", "Amparo Castelló") in suggested()
    names = ("Castelló", "Amparo Castelló")
    before = corpus.fetch("SELECT count(*) FROM mentions")
    corpus.run(lambda c: people.decide_alias(c, "ana", *names, confirmed=True))
    assert names not in suggested()
    found = corpus.run(lambda c: people.neighbourhood(c, "ana", "Amparo Castelló"))
    assert len(found.notes) == 2
    with pytest.raises(InvalidParameterError, match="no puede ser otro nombre"):
        corpus.run(
            lambda c: people.decide_alias(c, "ana", "Amparo Castelló", "Bernat", confirmed=True)
        )
    assert corpus.run(lambda c: people.withdraw_alias(c, "ana", *names))
    assert not corpus.run(lambda c: people.withdraw_alias(c, "ana", *names))
    assert corpus.fetch("SELECT count(*) FROM mentions") == before
    assert names in suggested()
    corpus.run(lambda c: people.decide_alias(c, "ana", *names, confirmed=False))
    assert names not in suggested()


def test_links_join_events_and_only_events(corpus: GraphCorpus) -> None:
    ends = ("Cerró la tienda", "llamó Castelló")
    corpus.run(lambda c: links.decide_link(c, "ana", *ends, Relation.TRIGGERS))
    found = corpus.run(lambda c: people.neighbourhood(c, "ana", ends[0]))
    assert ("", "TRIGGERS") in {(s.marker, s.relation) for s in found.statements}
    with pytest.raises(InvalidParameterError, match="dos hechos"):
        corpus.run(lambda c: links.decide_link(c, "ana", ends[0], "Bernat", Relation.CAUSES))
    assert corpus.run(lambda c: links.withdraw_link(c, "ana", *ends))
    assert not corpus.run(lambda c: links.withdraw_link(c, "ana", *ends))


def test_reviews_give_a_precision_with_its_interval(corpus: GraphCorpus) -> None:
    assert corpus.run(lambda c: people.precision(c, "ana")).interval is None
    listed = corpus.run(lambda c: people.to_review(c, "ana", limit=9))
    assert len(listed) == 2
    assert listed == corpus.run(lambda c: people.to_review(c, "ana", limit=9))
    for number, item in enumerate(listed):
        corpus.run(lambda c, i=item, r=number == 0: people.record_review(c, "ana", i, is_right=r))
    found = corpus.run(lambda c: people.precision(c, "ana"))
    assert (found.judged, found.good) == (2, 1)
    assert found.interval is not None
    assert found.interval.low < 0.5 < found.interval.high
    assert corpus.run(lambda c: people.to_review(c, "ana", limit=9)) == []


def test_the_shape_and_growth_of_the_graph(corpus: GraphCorpus) -> None:
    found = corpus.run(lambda c: people.shape(c, "ana"))
    assert (found.names, found.lonely, found.hubs, found.statements) == (5, 3, 0, 2)
    assert (found.widest, found.widest_name) == (2, "Bernat")
    assert found.orphan_share == pytest.approx(0.6)
    (month,) = corpus.run(lambda c: people.growth(c, "ana"))
    assert (month.notes, month.mentions, month.statements) == (3, found.mentions, 2)


def test_a_graph_without_anything_is_said_to_be_empty(corpus: GraphCorpus) -> None:
    empty = corpus.run(lambda c: people.overview(c, "nadie"))
    assert empty.in_words == Message.GRAPH_EMPTY
    filled = corpus.run(lambda c: people.overview(c, "ana"))
    assert "«Bernat»" in filled.in_words
