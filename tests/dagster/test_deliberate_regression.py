"""A deliberate regression is detected, stops the next steps, and its cause is named."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster_project import (
    CANDIDATE,
    CHUNKS,
    CONFIGURATIONS,
    EMBEDDINGS,
    GOLDEN,
    NOTES,
    PROMOTED,
    Project,
    evaluation,
    failure_texts,
    materialised,
    opened,
    settle_in,
)
from regression_corpus import CODE_MONTH, MEANING_MONTH, MEANINGS, write_corpus

from rag_assets.configured import read_configured
from rag_resources.application import open_application
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.retrievers import RetrieverName
from rag_resources.database.server import EmbeddedServer
from rag_resources.evaluation.runner import evaluate
from rag_resources.languages.labels import label
from rag_resources.languages.messages import _
from rag_resources.settings import load_settings
from tests.databases import cloned


def rapida(folder: Path) -> RetrievalConfig:
    """Read the candidate from a folder of configurations."""
    configured = read_configured(load_settings(rag_configurations=folder))
    return configured.configurations["rapida"].retrieval


SEMANTIC, FULLTEXT = RetrieverName.SEMANTIC, RetrieverName.FULLTEXT
RAPIDA = rapida(CONFIGURATIONS)
# The weight of words is almost gone, and the notes of codes differ by a word.
WORSE = {
    "fusion": {"method": "weighted"},
    "retrievers": {"semantic": {"weight": 1.0}, "fulltext": {"weight": 0.01}},
}
# The notes are few, so that it is the comparison with what serves, and nothing else, that refuses.
LENIENT = {"GATE__HIT_RATE_AT_10": "0.5"}


@pytest.fixture(scope="module")
def serving_templates(
    server: EmbeddedServer,
    template_database: str,
    dagster_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, str]]:
    """Names of the databases of a project whose candidate serves."""
    folder = tmp_path_factory.mktemp("serving")
    with cloned(server, template_database, dagster_template) as (database, dagster):
        corpus = write_corpus(folder)
        with opened(folder / "home", server.dsn(database), server.dsn(dagster), corpus) as made:
            indexed = made.run(NOTES, CHUNKS, EMBEDDINGS, months=(CODE_MONTH, MEANING_MONTH))
            assert indexed.success, failure_texts(indexed)
            result = made.run(GOLDEN, CANDIDATE, PROMOTED)
            assert result.success, failure_texts(result)
            assert evaluation(result, CANDIDATE, "no_regression").passed
        yield database, dagster


@pytest.fixture
def serving(
    server: EmbeddedServer,
    serving_templates: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Project]:
    """A project of its own whose candidate passed its gates and serves."""
    for name, value in LENIENT.items():
        monkeypatch.setenv(name, value)
    with cloned(server, *serving_templates) as (database, dagster):
        own = write_corpus(tmp_path)
        with opened(tmp_path / "home", server.dsn(database), server.dsn(dagster), own) as made:
            settle_in(made)
            yield made


@pytest.fixture
def worse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RetrievalConfig:
    """Make the candidate's file worse, and reload the code location."""
    named = yaml.safe_load((CONFIGURATIONS / "rapida.yaml").read_text("utf-8"))
    (tmp_path / "configurations").mkdir()
    (tmp_path / "configurations" / "rapida.yaml").write_text(
        yaml.safe_dump(named | {"retrieval": named["retrieval"] | WORSE}), "utf-8"
    )
    monkeypatch.setenv("RAG_CONFIGURATIONS", str(tmp_path / "configurations"))
    return rapida(tmp_path / "configurations")


def shown(said: dg.AssetCheckEvaluation, name: str) -> str:
    """A table of its metadata."""
    return str(said.metadata[label(name)].value)


def evaluate_candidate(config: RetrievalConfig) -> None:
    """Store an evaluation of the candidate as if it had this configuration."""
    with open_application(load_settings()) as application:
        evaluate(application.database, application.pipeline, "rapida", config)


def shuffle_half_a_month(project: Project) -> list[Any]:
    """Give each of every second chunk of a month the vectors of the next such chunk.

    Returns:
        The external ids of their notes.
    """
    return [
        name
        for (name,) in project.query(
            "WITH half AS ("
            " SELECT e.chunk_id, n.external_id, e.embedding,"
            " row_number() OVER (ORDER BY n.external_id) AS place"
            " FROM vectors AS e JOIN chunks AS c ON e.kind = 'chunk' AND c.id = e.chunk_id"
            " JOIN notes AS n ON n.id = c.note_id"
            " WHERE n.created_at >= %s::timestamptz"
            " AND n.created_at < %s::timestamptz + interval '1 month'),"
            " chosen AS (SELECT *, row_number() OVER (ORDER BY place) - 1 AS turn,"
            " count(*) OVER () AS total FROM half WHERE place %% 2 = 0)"
            " UPDATE vectors AS e SET embedding = o.embedding"
            " FROM chosen AS s JOIN chosen AS o ON o.turn = (s.turn + s.total / 2) %% s.total"
            " WHERE e.kind = 'chunk' AND e.chunk_id = s.chunk_id RETURNING s.external_id",
            f"{MEANING_MONTH} 00:00+00",
            f"{MEANING_MONTH} 00:00+00",
        )
    ]


def test_worse_weights_are_caught_named_and_not_promoted(
    serving: Project, worse: RetrievalConfig
) -> None:
    evaluate_candidate(worse)
    said = serving.check(CANDIDATE, "no_regression")
    assert (said.passed, said.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert "es peor" in str(said.description)
    assert shown(said, "changes").splitlines()[2:] == [
        f"| retrievers.fulltext.weight | {RAPIDA.retrievers[FULLTEXT].weight} | 0.01 |",
        f"| retrievers.semantic.weight | {RAPIDA.retrievers[SEMANTIC].weight} | 1.0 |",
    ]
    lost = said.metadata[label("lost")].value
    assert f"la configuración perdió {lost} y los datos 0" in shown(said, "causes")
    refused = serving.run(PROMOTED)
    assert not refused.success
    assert "es peor que «rapida», que sirve: Hit_Rate@10 es peor" in failure_texts(refused)
    assert serving.query("SELECT count(*) FROM promotions") == [(1,)]


def test_half_a_month_of_shuffled_vectors_is_caught_and_that_month_is_suspected(
    serving: Project,
) -> None:
    """No further batch and no promotion; two months were worked on, and one has lost notes."""
    assert len(shuffle_half_a_month(serving)) == len(MEANINGS) // 2
    for month in (MEANING_MONTH, CODE_MONTH):
        serving.instance.report_runless_asset_event(
            dg.AssetMaterialization(EMBEDDINGS, partition=month, metadata={"migrated": 15})
        )
    batch = serving.check(EMBEDDINGS, "retrieval_quality")
    assert batch.metadata[label("next_batch")].value == _("The next batch will not start")
    # A sample of the month has the shuffled half in it, or the questions tell.
    assert re.search("vectores no son los del modelo|caída significativa", str(batch.description))
    serving.query("UPDATE notes SET content = content || ' Más.' WHERE external_id = 'code-39'")
    refused = serving.run(CHUNKS, EMBEDDINGS, months=(CODE_MONTH,))
    assert not materialised(refused, CHUNKS)
    assert "el control de calidad está cerrado" in failure_texts(refused)

    evaluate_candidate(RAPIDA)
    said = serving.check(CANDIDATE, "no_regression")
    assert (said.passed, said.severity) == (False, dg.AssetCheckSeverity.ERROR)
    lost = said.metadata[label("lost")].value
    assert f"la configuración perdió 0 y los datos {lost}" in shown(said, "causes")
    assert f"vectores ({MEANING_MONTH[:7]})" in shown(said, "changes")
    assert "es peor que «rapida», que sirve" in failure_texts(serving.run(PROMOTED))
