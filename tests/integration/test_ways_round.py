"""Ways round the gate: how something that was not measured might come to serve.

The list came first. Tests with a file's name stand there; the others are below, by the same words.

====  ===============================================  =============================================
 No.  Way                                              Tried by
====  ===============================================  =============================================
      **The evaluation is of something else now**
   1  golden questions swapped                         WAYS
   2  golden questions shrunk                          WAYS
   3  golden questions emptied                         WAYS
   4  configuration file edited                        WAYS
   5  configuration file edited while it serves        test_serving_compared
   6  copy of a configuration under another name       WAYS
   7  chunks deleted by SQL                            WAYS
   8  vectors exchanged by SQL                         WAYS
   9  note of a question edited                        WAYS
  10  note of a question expires                       WAYS
  11  model made again under the same name             WAYS
  12  digest of the model edited by SQL                WAYS
  13  word statistics edited by SQL                    WAYS
  14  chunked otherwise                                test_evidence
  15  any other statement on what is searched          test_evidence
  16  tenant changed                                   WAYS
  17  model of whole notes changed                     WAYS
  18  language model changed                           WAYS
  19  clock set back                                   test_evidence
  20  index gone: rollback, resume, half backfilled    dagster/test_promotion_gate
  21  hidden during the evaluation, and put back       test_evidence
  22  written to between evaluation and decision       test_written_to_between…
      **The evaluation itself**
  23  evaluated with --no-store                        WAYS
  24  evaluation of another tenant                     WAYS
  25  database restored from before the evaluation     WAYS
  26  from before it recorded what it measured         test_evidence
  27  from before what users get was measured          dagster/test_promotion_gate
  28  disturbed evaluation                             test_disturbed_evaluations
  29  its questions deleted                            REFUSED_ROWS
      its questions truncated                          REFUSED_ROWS
  30  stale figures of what serves                     test_serving_compared
  31  many small losses, one a night                   test_serving_reference
      **The decision**
  32  limits of the gate raised after the evaluation   WAYS
  33  model retired after the evaluation               WAYS
  34  a reference, or an unknown name, by run config   WAYS, dagster/test_promotion_gate
  35  named in the run config of a failing candidate   dagster/test_promotion_gate
  36  the job, alone, without evaluation               dagster/test_promotion_gate
  37  command line: dagster asset materialize          dagster/test_promotion_gate
  38  automation before every gate has spoken          dagster/test_sensors
  39  UI: check and asset reported as done by hand     dagster/test_promotion_gate
  40  withdrawn, promoted without a name               test_rollback
  41  withdrawn, under another name                    test_rollback
  42  promoted while rolled back                       test_rollback
  43  two promotions at once                           test_two_promotions_at_once…
  44  interrupted promotion                            test_an_interrupted_promotion…
      **The rows, by SQL under the product's role**
  45  figures of an evaluation edited                  REFUSED_ROWS
  46  a disturbed evaluation declared undisturbed      REFUSED_ROWS
  47  answers to single questions edited               REFUSED_ROWS
  48  promotion without an evaluation                  REFUSED_ROWS
  49  promotion of what another evaluation measured    REFUSED_ROWS
  50  what serves edited in its promotion              REFUSED_ROWS
  51  promotion on an evaluation of another tenant     REFUSED_ROWS
      **Added later**
  52  what serves was never evaluated                  test_serving_compared
  53  promotion killed before it commits               test_a_killed_promotion…
  54  the UI: launched over GraphQL for a reference    dagster/test_processes
====  ===============================================  =============================================

What SQL under the product's role can do beyond that is told in docs/evaluating.md.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from rag_resources.application import serving
from rag_resources.core.errors import (
    DatabaseUnavailableError,
    OvertakenPromotionError,
    RagError,
)
from rag_resources.core.evidence import EvidenceState, SearchSettings
from rag_resources.core.gate import GateConfig
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.store.models import claim_model, retire_model
from tests.databases import cloned
from tests.evaluated_corpus import (
    ASKED,
    CANDIDATE,
    OTHER_CANDIDATE,
    STEPS,
    Evaluated,
    Product,
)
from tests.killed import kill_at_insert
from tests.waiting import wait_until

NAME = CANDIDATE.name
NOTES = 8


@pytest.fixture(scope="module")
def evaluated(server: EmbeddedServer, template_database: str) -> Iterator[str]:
    """Name of a database in which the candidate was evaluated, and nothing promoted."""
    with cloned(server, template_database) as (name,):
        with Database(server.dsn(name)) as database:
            Evaluated.filled(database, NOTES).evaluate(CANDIDATE)
        yield name


@pytest.fixture
def copied(server: EmbeddedServer, evaluated: str) -> Iterator[str]:
    """URL of a copy of that database."""
    with cloned(server, evaluated) as (name,):
        yield server.dsn(name)


@pytest.fixture
def product(copied: str) -> Iterator[Product]:
    """That copy, with one candidate."""
    with Database(copied) as database:
        yield Product(Evaluated.found(database), {NAME: CANDIDATE})


def sql(statement: str) -> Callable[[Product], None]:
    """Somebody with psql."""

    def run(product: Product) -> None:
        with product.corpus.database.transaction() as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    return run


def edit(product: Product) -> None:
    """Another content under the same name."""
    product.configurations = {
        NAME: CANDIDATE.model_copy(update={"retrieval": OTHER_CANDIDATE.retrieval})
    }


def copy(product: Product) -> None:
    """The file is renamed; what was evaluated under the first name stays there."""
    product.configurations = {NAME: CANDIDATE.model_copy(update={"name": "copia"})}


def set_to(settings: SearchSettings) -> Callable[[Product], None]:
    """Another environment."""

    def change(product: Product) -> None:
        product.settings = settings

    return change


def limit(product: Product) -> None:
    """A stricter environment."""
    product.gate = GateConfig(hit_rate_at_10=0.1, latency_p95_ms=0.001)


def retire(product: Product) -> None:
    """The model's vectors are deleted."""
    with product.corpus.database.transaction() as connection:
        claim_model(connection, "openai_hash")
        retire_model(connection, "openai_hash")


def measure_only(product: Product) -> None:
    """Evaluate, and keep nothing."""
    sql("DELETE FROM evaluation_results")(product)
    product.corpus.evaluate(CANDIDATE, store=False)


STALE = "su última evaluación está obsoleta"
UNKNOWN = "no es una de las opciones"
NEVER = "aún no se ha evaluado"
WAYS: dict[str, tuple[Callable[[Product], None], str]] = {
    "golden questions swapped": (lambda p: p.corpus.ask_for(range(1, ASKED + 1)), STALE),
    "golden questions shrunk": (lambda p: p.corpus.ask_for(range(ASKED - 1)), STALE),
    "golden questions emptied": (sql("DELETE FROM golden_dataset"), STALE),
    "configuration file edited": (edit, "la configuración ha cambiado"),
    "copy of a configuration under another name": (copy, NEVER),
    "chunks deleted by SQL": (sql("DELETE FROM chunks"), STALE),
    "vectors exchanged by SQL": (sql(STEPS["vectors exchanged"]), STALE),
    "note of a question edited": (
        sql("UPDATE notes SET content = 'Nada.' WHERE external_id = '0'"),
        STALE,
    ),
    "note of a question expires": (
        sql("UPDATE notes SET expires_at = now() WHERE external_id = '0'"),
        STALE,
    ),
    "model made again under the same name": (lambda p: p.corpus.make_model_again(), STALE),
    "digest of the model edited by SQL": (
        sql("UPDATE embedding_models SET digest = 'otro'"),
        STALE,
    ),
    "word statistics edited by SQL": (
        sql("UPDATE corpus_statistics SET average_lexeme_occurrences = 99"),
        STALE,
    ),
    "tenant changed": (set_to(SearchSettings("otra")), STALE),
    "language model changed": (set_to(SearchSettings("ana", "ollama:x")), STALE),
    "evaluated with --no-store": (measure_only, NEVER),
    "evaluation of another tenant": (
        lambda p: p.corpus.forge("UPDATE evaluation_results SET tenant_id = 'otra'"),
        NEVER,
    ),
    "database restored from before the evaluation": (
        sql("DELETE FROM evaluation_results"),
        NEVER,
    ),
    "limits of the gate raised after the evaluation": (limit, "p95"),
    "model retired after the evaluation": (retire, "modelo"),
    "a reference, or an unknown name, by run config": (
        lambda p: p.configurations.clear(),
        UNKNOWN,
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_not_measured_is_not_promoted_and_it_is_said_why(
    product: Product, way: str
) -> None:
    change, said = WAYS[way]
    change(product)
    name = next((item.name for item in product.configurations.values()), NAME)
    product.configurations = {item.name: item for item in product.configurations.values()}
    with pytest.raises(RagError) as refused:
        product.decide(name)
    assert said in refused.value.message
    assert promoted(product) == []


INSERTED = """
    INSERT INTO promotions (configuration, config, config_hash, model, evaluation_id, tenant_id)
    SELECT configuration, {config}, {config_hash}, model, {id}, {tenant} FROM evaluation_results
"""


def inserted(**changed: str) -> str:
    """A promotion that differs from its evaluation in one value."""
    own = {name: name for name in ("config", "config_hash", "id")} | {"tenant": "tenant_id"}
    return INSERTED.format(**own | changed)


REFUSED_BY_TRIGGER = (
    r"is only added to|names no undisturbed evaluation|deleted with their evaluation alone"
)
REFUSED_ROWS = {
    "figures of an evaluation edited": "UPDATE evaluation_results SET hit_rate_at_10 = 1",
    "a disturbed evaluation declared undisturbed": (
        "UPDATE evaluation_results SET degraded_queries = 0, gate = 'pass'"
    ),
    "answers to single questions edited": "UPDATE evaluation_queries SET metrics = '{}'",
    "its questions deleted": "DELETE FROM evaluation_queries",
    "its questions truncated": "TRUNCATE evaluation_queries",
    "promotion without an evaluation": inserted(id="NULL"),
    "promotion of what another evaluation measured": inserted(
        config="config || '{\"diversity_weight\": 0.5}'"
    ),
    "what serves edited in its promotion": "UPDATE promotions SET config = '{}'",
    "promotion on an evaluation of another tenant": inserted(tenant="'otra'"),
}


@pytest.mark.parametrize("way", REFUSED_ROWS)
def test_rows_that_say_more_than_was_measured_are_refused(product: Product, way: str) -> None:
    product.decide(NAME)
    with pytest.raises(psycopg.errors.RaiseException, match=REFUSED_BY_TRIGGER):
        sql(REFUSED_ROWS[way])(product)
    sql(inserted())(product)
    assert promoted(product) == [NAME, NAME]


def test_written_to_between_evaluation_and_decision_it_is_refused(
    product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The promotion looks again after it evaluated, as often as it evaluates."""
    monkeypatch.setattr(serving, "OVERTAKEN_PAUSES_S", (0.0, 0.0))
    write = sql("UPDATE notes SET content = content || ' Nada.' WHERE external_id = '0'")
    write(product)
    product.afterwards = lambda: write(product)
    with pytest.raises(OvertakenPromotionError, match=STALE):
        product.promote(NAME)
    assert promoted(product) == []
    evaluated = product.corpus.fetch("SELECT count(*) FROM evaluation_results")
    assert evaluated == [(4,)], "once to begin with, and at each of three tries"


def test_written_to_once_meanwhile_it_is_evaluated_again_and_promoted(
    product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "OVERTAKEN_PAUSES_S", (0.0,))
    write = sql("UPDATE notes SET content = content || ' Nada.' WHERE external_id = '0'")
    write(product)
    writes = iter([write])
    product.afterwards = lambda: [each(product) for each in writes]
    outcome = product.promote(NAME)
    assert outcome.evaluated_again == (NAME, NAME)
    assert outcome.evidence.state is EvidenceState.CURRENT
    assert promoted(product) == [NAME]


def test_measured_again_it_is_promoted_on_the_new_figures(product: Product) -> None:
    sql("UPDATE notes SET content = 'Nada.' WHERE external_id = '0'")(product)
    outcome = product.promote(NAME)
    assert outcome.evaluated_again == (NAME,)
    assert outcome.evidence.state is EvidenceState.CURRENT


def test_two_promotions_at_once_are_one(product: Product) -> None:
    with ThreadPoolExecutor(2) as pool:
        changed = [each.changed for each in pool.map(product.decide, [NAME, NAME])]
    assert sorted(changed) == [False, True]
    assert promoted(product) == [NAME]


def test_an_interrupted_promotion_leaves_what_serves(product: Product) -> None:
    """Its connection is ended while it waits for its turn; the next call promotes."""
    waiting = "SELECT pid FROM pg_locks WHERE relation = 'promotions'::regclass AND NOT granted"
    database = product.corpus.database
    with (
        database.transaction() as watcher,
        ThreadPoolExecutor(1) as pool,
        database.transaction() as holder,
    ):
        holder.execute("LOCK TABLE promotions")
        promotion = pool.submit(product.decide, NAME)
        wait_until(lambda: watcher.execute(waiting).fetchone() is not None)
        watcher.execute(f"SELECT pg_terminate_backend(w.pid) FROM ({waiting}) AS w")
        with pytest.raises(DatabaseUnavailableError):
            promotion.result()
    assert promoted(product) == []
    assert product.decide(NAME).changed


KILLED = """
import sys
from rag_resources.database.pool import Database
from tests.evaluated_corpus import CANDIDATE, Evaluated, Product
with Database(sys.argv[1]) as database:
    Product(Evaluated.found(database), {CANDIDATE.name: CANDIDATE}).decide(CANDIDATE.name)
"""


def test_a_killed_promotion_leaves_what_serves(product: Product, copied: str) -> None:
    """Its process gets SIGKILL when the row is written, but not committed."""
    kill_at_insert(copied, "promotions", KILLED)
    assert promoted(product) == []
    assert product.decide(NAME).changed


def promoted(product: Product) -> list[str]:
    """What was promoted, oldest first."""
    return [name for (name,) in product.corpus.fetch("SELECT configuration FROM promotions")]


def test_the_list_names_every_way_and_tests_that_exist() -> None:
    listed = str(__doc__)
    assert all(f"  {way} " in listed for way in [*WAYS, *REFUSED_ROWS])
    here = Path(__file__)
    for named in re.findall(r"(?:dagster/)?test_[a-z_]+(?=\n|,)", listed):
        folder = here.parent.parent if named.startswith("dagster/") else here.parent
        assert (folder / f"{named}.py").is_file(), named
    own = re.findall(r"(test_[a-z_]+)…", listed)
    assert all(any(name.startswith(each) for name in globals()) for each in own)
