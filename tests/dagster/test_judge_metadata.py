"""What the Dagster UI shows of a judged evaluation."""

from pathlib import Path

import pytest

from rag_assets.evaluation.metadata import evaluation_metadata
from rag_resources.answers.answerers import QUOTATION_VERSION, QuotationAnswerer
from rag_resources.application import Application
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.golden import GoldenEntry
from rag_resources.database.pool import Database
from rag_resources.evaluation.judge import EmbeddedJudge
from rag_resources.evaluation.judging import Judging
from rag_resources.evaluation.runner import evaluate
from rag_resources.settings import load_settings
from rag_resources.store.golden import write_golden
from tests.corpus import Corpus, Draft

SHOWN = {
    "faithfulness",
    "answer_relevance",
    "judge",
    "answerer",
    "judged_queries",
    "judge_failures",
}


@pytest.fixture
def application(database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Application:
    monkeypatch.chdir(tmp_path)
    return Application(load_settings(), database)


@pytest.mark.parametrize(("question", "judged"), [("¿Quién duerme?", 1), ("¿xilófono?", 0)])
def test_judgements_are_metadata_and_a_mean_over_nothing_is_left_out(
    application: Application, question: str, judged: int
) -> None:
    corpus = Corpus(application.database)
    (note,) = corpus.fill([Draft("La gata duerme.")])
    with application.database.transaction() as connection:
        entry = GoldenEntry(question, (note,), "La gata.", "factual", 1)
        write_golden(connection, [entry], replace=True)
    judging = Judging(QuotationAnswerer(), EmbeddedJudge(corpus.embedder))
    config = RetrievalConfig(strategy="fulltext")

    plain, with_judge = (
        evaluation_metadata(
            application.evaluations.stored(
                evaluate(corpus.database, corpus.pipeline(), "x", config, judging=item)
            )
        )
        for item in (None, judging)
    )

    assert not plain.keys() & SHOWN
    assert (with_judge["judged_queries"], with_judge["judge_failures"]) == (judged, 0)
    assert with_judge["judge"] == "embedded: openai_hash 1, embedded-5"
    assert with_judge["answerer"] == QUOTATION_VERSION
    assert "faithfulness" not in with_judge, "extracted answers only quote"
    assert ("answer_relevance" in with_judge) == bool(judged)
