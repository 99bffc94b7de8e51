"""A language model proposes links between notes, over HTTP, and a person decides about them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_resources.core.causal import Relation
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.errors import ModelMissingError, ProviderError, ProviderUnavailableError
from rag_resources.core.messages import Message
from rag_resources.database.pool import Database
from rag_resources.graph import links
from rag_resources.graph.proposing import proposals_version, propose_links
from rag_resources.ingestion.ingest import ingest
from rag_resources.providers.ollama_chat import OllamaChat
from rag_resources.providers.registry import build_language_model
from rag_resources.settings import load_settings
from tests.command_line import Outcome, call_rag, isolate
from tests.corpus import SOURCE, Draft, records
from tests.graph_corpus import GraphCorpus, graph_config
from tests.ollama_server import Fault, Json, OllamaServer

LONG = ChunkingConfig(max_tokens=512, overlap_tokens=0, min_tokens=0)
FLOOD = "El martes llovió muchísimo, así que reventó la tubería del Xúquer."
CLOSED = "El gimnasio municipal sigue cerrado porque se hundió el techo junto al Xúquer."
CAKE = "La tarta salió quemada porque falló el horno de mi prima."
NOTES = [Draft(FLOOD), Draft(CLOSED), Draft(CAKE)]
PIPE, ROOF = "reventó la tubería del Xúquer", "se hundió el techo junto al Xúquer"
RAIN, GYM = "El martes llovió muchísimo", "El gimnasio municipal sigue cerrado"
WHY = "¿Por qué sigue cerrado el gimnasio?"
CHAT = "/api/chat"
Rag = Callable[..., Outcome]


def events_of(messages: list[Json]) -> list[str]:
    """The two events that the model is asked about, in order."""
    return re.findall(r'<hecho n="\w+" fecha="[-\d]+">\n(.*)\n', messages[-1]["content"])


def judge(_: Json, messages: list[Json]) -> Json:
    """Say that the burst pipe brought the roof down, and nothing else."""
    first, second = events_of(messages)
    verdict = {(PIPE, ROOF): "FIRST", (ROOF, PIPE): "SECOND"}.get((first, second), "NONE")
    reason = "El agua de la tubería debilitó el techo."
    return {"reason": reason, "verdict": verdict, "relation": "LEADS_TO", "confidence": 0.75}


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    with OllamaServer(answers=judge) as server:
        yield server


@pytest.fixture
def model(ollama: OllamaServer) -> Iterator[OllamaChat]:
    with OllamaChat("llama3.2", host=ollama.host) as built:
        yield built


@pytest.fixture
def corpus(database: Database) -> GraphCorpus:
    made = GraphCorpus(database)
    made.fill(NOTES, LONG)
    made.read()
    return made


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    corpus: GraphCorpus,
    ollama: OllamaServer,
    database_url: str,
) -> Iterator[Rag]:
    """Call `rag graph` on the database of the corpus, with the model."""
    isolate(
        monkeypatch,
        tmp_path,
        DATABASE_URL=database_url,
        TENANT="ana",
        LLM_MODEL="ollama:llama3.2",
        OLLAMA_HOST=ollama.host,
    )

    def call(*arguments: str | Path, stdin: str = "") -> Outcome:
        return call_rag(monkeypatch, capsys, "graph", *arguments, stdin=stdin)

    yield call
    kept = build_language_model("ollama:llama3.2", load_settings().servers)
    assert isinstance(kept, OllamaChat)
    kept.close()


def pairs_of(corpus: GraphCorpus, version: str = "") -> set[frozenset[str]]:
    """The pairs that a model of a version would be asked about."""
    found = corpus.run(lambda c: links.candidates(c, "ana", version=version, limit=100))
    return {frozenset((pair.one.name, pair.other.name)) for pair in found}


def proposed(corpus: GraphCorpus) -> list[tuple[str, str, str]]:
    """What waits for a person."""
    found = corpus.run(lambda c: links.proposals(c, "ana", limit=100))
    return [(item.cause, item.relation, item.effect) for item in found]


def finds_the_flood(corpus: GraphCorpus) -> bool:
    """Whether a question about the gymnasium leads to the note about the pipe."""
    found = corpus.ask(WHY, graph_config(min_relevance=0.5))
    return FLOOD in {result.content for result in found.results}


# --- What the model is asked ------------------------------------------------------------------


def test_candidates_are_events_of_different_notes_that_share_something_rare(
    corpus: GraphCorpus,
) -> None:
    """A name of the passage counts, too, so the rain and the gymnasium are a pair."""
    assert pairs_of(corpus) == {frozenset((a, b)) for a in (RAIN, PIPE) for b in (ROOF, GYM)}
    found = corpus.run(lambda c: links.candidates(c, "ana", version="", limit=1))
    # It shares a word of its own beside the name.
    assert [{pair.one.name, pair.other.name} for pair in found] == [{PIPE, ROOF}]
    assert corpus.run(lambda c: links.candidates(c, "luis", version="", limit=9)) == []


def test_what_is_common_makes_no_candidates(database: Database) -> None:
    corpus = GraphCorpus(database)
    often = [
        Draft(f"La obra {n} paró porque faltó arena {n}.") for n in range(links.MOST_EVENTS + 1)
    ]
    corpus.fill(often, LONG)
    corpus.read()
    assert pairs_of(corpus) == set()


def test_an_event_has_only_its_best_pairs(database: Database) -> None:
    corpus = GraphCorpus(database)
    alike = [Draft(f"Cerramos tarde porque tosía Ximo {n}.") for n in range(links.MOST_PAIRS + 6)]
    corpus.fill(alike, LONG)
    corpus.read()
    events = len(corpus.events())
    assert 0 < len(pairs_of(corpus)) <= events * links.MOST_PAIRS


def test_an_alias_makes_two_names_one(database: Database) -> None:
    corpus = GraphCorpus(database)
    corpus.fill(
        [
            Draft("Con Amparo Castelló fuimos tarde. No abrió nadie, así que volvimos andando."),
            Draft("Luego vino Castellona. Perdimos la llave porque llevaba prisa."),
        ],
        LONG,
    )
    corpus.read()
    assert pairs_of(corpus) == set()
    corpus.run(
        lambda c: c.execute(
            "INSERT INTO entity_aliases (tenant_id, alias_id, entity_id, state)"
            " SELECT 'ana', a.id, e.id, 'confirmed' FROM entities AS a, entities AS e"
            " WHERE a.name = 'Castellona' AND e.name = 'Amparo Castelló'"
        )
    )
    assert len(pairs_of(corpus)) == 4


def test_expired_notes_and_equal_events_are_not_asked_about(corpus: GraphCorpus) -> None:
    twice = [*NOTES, Draft(FLOOD)]
    ingest(corpus.database, records(twice, "ana"), tenant="ana", source=SOURCE)
    corpus.index(LONG)
    corpus.read()
    assert all(len(pair) == 2 for pair in pairs_of(corpus))
    corpus.run(
        lambda c: c.execute(
            "UPDATE notes SET expires_at = now() - interval '1 minute' WHERE content = %s",
            (CLOSED,),
        )
    )
    assert not any(ROOF in pair or GYM in pair for pair in pairs_of(corpus))


# --- What it proposes -------------------------------------------------------------------------


def test_a_proposal_is_stored_with_where_it_comes_from(
    corpus: GraphCorpus, model: OllamaChat, ollama: OllamaServer
) -> None:
    done: list[int] = []
    report = propose_links(corpus.database, "ana", model, limit=10, progress=done.append)
    assert (report.asked, report.proposed, report.failed, sum(done)) == (4, 1, 0, 4)
    (found,) = corpus.run(lambda c: links.proposals(c, "ana", limit=9))
    assert (found.cause, found.relation, found.effect) == (PIPE, "LEADS_TO", ROOF)
    assert (found.cause_content, found.effect_content) == (FLOOD, CLOSED)
    assert (found.model, found.version) == (model.name, proposals_version(model.name))
    assert (found.confidence, found.reason) == (0.75, "El agua de la tubería debilitó el techo.")
    asked = ollama.requests_to(CHAT)
    assert {frozenset(events_of(body["messages"])) for body in asked} == {
        frozenset((a, b)) for a in (RAIN, PIPE) for b in (ROOF, GYM)
    }
    for body in asked:
        # The older note comes first, with its day.
        prompt = body["messages"][-1]["content"]
        assert prompt.index("2025-01-01") < prompt.index(FLOOD) < prompt.index("2025-01-02")
        assert sorted(body["format"]["properties"]) == [
            "confidence",
            "reason",
            "relation",
            "verdict",
        ]


def test_a_proposal_is_followed_only_once_a_person_confirms_it(
    corpus: GraphCorpus, model: OllamaChat
) -> None:
    propose_links(corpus.database, "ana", model, limit=10)
    assert proposed(corpus) == [(PIPE, "LEADS_TO", ROOF)]
    assert not finds_the_flood(corpus)
    corpus.run(lambda c: links.decide_link(c, "ana", PIPE, ROOF, Relation.LEADS_TO))
    assert proposed(corpus) == []
    assert finds_the_flood(corpus)
    assert corpus.run(lambda c: links.withdraw_link(c, "ana", PIPE, ROOF))
    assert proposed(corpus) == [(PIPE, "LEADS_TO", ROOF)]
    assert not finds_the_flood(corpus)
    corpus.run(
        lambda c: links.decide_link(c, "ana", PIPE, ROOF, Relation.LEADS_TO, confirmed=False)
    )
    assert proposed(corpus) == []
    assert not finds_the_flood(corpus)


def test_a_pair_is_asked_about_once_unless_its_passage_or_the_model_changes(
    corpus: GraphCorpus, model: OllamaChat, ollama: OllamaServer
) -> None:
    assert propose_links(corpus.database, "ana", model, limit=3).asked == 3
    assert propose_links(corpus.database, "ana", model, limit=3).asked == 1
    assert propose_links(corpus.database, "ana", model, limit=3).asked == 0
    assert len(ollama.requests_to(CHAT)) == 4
    version = proposals_version(model.name)
    assert pairs_of(corpus, version) == set()
    assert len(pairs_of(corpus, proposals_version("ollama:otro"))) == 4

    edited = [NOTES[0], replace(NOTES[1], text=f"{CLOSED} Lo vi ayer."), NOTES[2]]
    ingest(corpus.database, records(edited, "ana"), tenant="ana", source=SOURCE)
    corpus.index(LONG)
    corpus.read()
    assert proposed(corpus) == []
    assert len(pairs_of(corpus, version)) == 4
    corpus.run(lambda c: c.execute("DELETE FROM notes WHERE content = %s", (FLOOD,)))
    assert pairs_of(corpus, version) == set()


def test_what_a_person_decided_is_not_asked_about(corpus: GraphCorpus) -> None:
    corpus.run(lambda c: links.decide_link(c, "ana", ROOF, PIPE, Relation.CAUSES, confirmed=False))
    assert frozenset((PIPE, ROOF)) not in pairs_of(corpus)
    assert len(pairs_of(corpus)) == 3


def test_a_proposal_goes_with_its_notes(corpus: GraphCorpus, model: OllamaChat) -> None:
    propose_links(corpus.database, "ana", model, limit=10)
    corpus.run(
        lambda c: c.execute(
            "UPDATE notes SET expires_at = now() - interval '1 minute' WHERE content = %s",
            (FLOOD,),
        )
    )
    assert proposed(corpus) == []
    corpus.run(lambda c: c.execute("DELETE FROM notes WHERE content = %s", (FLOOD,)))
    assert corpus.fetch("SELECT FROM link_proposals") == []


def test_notes_that_go_while_the_model_thinks_leave_nothing(
    corpus: GraphCorpus, model: OllamaChat, ollama: OllamaServer
) -> None:
    def deleting(schema: Json, messages: list[Json]) -> Any:
        corpus.run(lambda c: c.execute("DELETE FROM notes WHERE content = %s", (FLOOD,)))
        return judge(schema, messages)

    ollama.answers = deleting
    assert propose_links(corpus.database, "ana", model, limit=10).asked == 4
    assert corpus.fetch("SELECT FROM link_proposals") == []


# --- Failures ---------------------------------------------------------------------------------


def test_what_was_judged_stays_when_the_model_goes_away(
    corpus: GraphCorpus, model: OllamaChat, ollama: OllamaServer
) -> None:
    """A run goes on where another one stopped, and asks about no pair twice."""
    ollama.chat_models.clear()
    with pytest.raises(ModelMissingError):
        propose_links(corpus.database, "ana", model, limit=10)
    ollama.chat_models.append("llama3.2:latest")
    ollama.inject(Fault.STATUS, path=CHAT, times=1, status=400)
    assert propose_links(corpus.database, "ana", model, limit=10).failed == 1
    assert len(corpus.fetch("SELECT FROM link_proposals")) == 3
    assert propose_links(corpus.database, "ana", model, limit=10).asked == 1
    ollama.requests.clear()
    assert propose_links(corpus.database, "ana", model, limit=10).asked == 0
    assert ollama.requests == []


def test_a_server_that_refuses_everything_ends_the_run(
    corpus: GraphCorpus, model: OllamaChat, ollama: OllamaServer
) -> None:
    ollama.inject(Fault.STATUS, path=CHAT, status=400)
    with pytest.raises(ProviderError):
        propose_links(corpus.database, "ana", model, limit=10)
    assert corpus.fetch("SELECT FROM link_proposals") == []


def test_a_model_that_is_late_ends_the_run_and_is_asked_again(
    corpus: GraphCorpus, model: OllamaChat, ollama: OllamaServer
) -> None:
    ollama.inject(Fault.SLOW, path=CHAT, seconds=60)
    with pytest.raises(ProviderUnavailableError, match="rag graph propose"):
        propose_links(corpus.database, "ana", model, limit=10, timeout_ms=300)
    ollama.heal()
    assert propose_links(corpus.database, "ana", model, limit=10).asked == 4


def test_an_answer_of_no_use_is_counted_and_not_asked_for_again(
    corpus: GraphCorpus, model: OllamaChat, ollama: OllamaServer
) -> None:
    ollama.inject(Fault.CONTENT, path=CHAT, times=2)
    report = propose_links(corpus.database, "ana", model, limit=10)
    assert (report.asked, report.failed) == (4, 2)
    assert propose_links(corpus.database, "ana", model, limit=10).asked == 0


# --- The command line -------------------------------------------------------------------------


def test_without_a_model_it_says_so(rag: Rag, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLM_MODEL")
    refused = rag("propose")
    assert refused.code == 2
    assert Message.GRAPH_LINKS_NEED_LANGUAGE_MODEL in refused.err
    assert refused.out == ""
    assert rag("links", "--json").json == []


def test_proposals_are_listed_decided_and_undone(rag: Rag, ollama: OllamaServer) -> None:
    asked = rag("propose", "--limit", "10")
    assert asked.code == 0
    assert "4 pares" in asked.out
    assert rag("propose", "--json").json == {"asked": 0, "proposed": 0, "failed": 0}
    (found,) = rag("links", "--json").json
    assert (found["cause"], found["effect"], found["relation"]) == (PIPE, ROOF, "LEADS_TO")
    assert (found["model"], found["confidence"]) == ("ollama:llama3.2", 0.75)
    shown = rag("links").out
    assert PIPE in shown
    assert Message.GRAPH_LINKS_HOW in shown
    assert rag("status", "--json").json["proposals"] == 1

    ends = (found["causeId"], found["effectId"])
    assert rag("link", *ends, "--no").code == 0
    assert rag("links", "--json").json == []
    assert rag("status", "--json").json["proposals"] == 0
    assert Message.GRAPH_BY_PERSON not in rag("show", PIPE).out
    assert Message.GRAPH_UNDONE in rag("link", *ends, "--undo").out
    assert len(rag("links", "--json").json) == 1
    assert rag("link", *ends, "--relation", "LEADS_TO").code == 0
    assert Message.GRAPH_BY_PERSON in rag("show", PIPE).out
    assert rag("links", "--json").json == []


@pytest.mark.parametrize(("said", "state"), [("s\n", "confirmed"), ("n\n", "rejected")])
def test_a_person_judges_the_proposals_one_by_one(
    rag: Rag, corpus: GraphCorpus, said: str, state: str
) -> None:
    rag("propose")
    assert len(rag("review", "--links", "--json").json) == 1
    skipped = rag("review", "--links", stdin="\n")
    assert FLOOD in skipped.out
    assert CLOSED in skipped.out
    assert "El agua de la tubería" in skipped.out
    assert corpus.fetch("SELECT FROM event_links") == []
    assert rag("review", "--links", stdin=said).code == 0
    (row,) = corpus.fetch("SELECT state, type, decided_by FROM event_links")
    assert (row.state, row.type, row.decided_by) == (state, "LEADS_TO", "person")
    assert rag("review", "--links", "--json").json == []
