"""The asset `evaluation_report`: the page it writes, and what the Dagster UI shows of it."""

from pathlib import Path

import dagster as dg
from dagster_project import Project, materialised

from rag_resources.configurations import load_configurations
from rag_resources.core.golden import golden_hash
from rag_resources.database.pool import Database
from rag_resources.settings import load_settings
from rag_resources.store.notes import note_id
from tests.stored_evaluations import Asked, store_evaluation

REPORT = dg.AssetKey("evaluation_report")
RELEVANT, OTHER = (note_id("default", "notes", name) for name in ("a", "b"))


def test_it_shows_numbers_and_a_table(project: Project) -> None:
    """The page lies under RAG_HOME; numbers are plotted over time."""
    settings = load_settings()
    configurations = load_configurations(settings.configuration_folders)
    with Database(project.database_url) as database:
        for name, found in (("rapida", RELEVANT), ("baseline", OTHER)):
            asked = [Asked(0, [RELEVANT], [RELEVANT]), Asked(1, [RELEVANT], [found])]
            store_evaluation(
                database,
                name,
                asked,
                config=configurations[name].retrieval,
                golden=golden_hash([]),
                settings=settings.search,
            )
    result = project.run(REPORT)
    assert result.success
    shown = materialised(result, REPORT)[None]
    assert shown["configurations"] == 2
    assert (shown["best_hit_rate_at_10"], shown["best_mrr"]) == (1, 1)
    assert (shown["passing"], shown["missed_questions"]) == (1, 0)
    assert "serving_mrr" not in shown
    best = shown["comparison"].records[0].data
    assert (best["configuración"], best["Hit_Rate@10"]) == ("rapida", 1.0)
    types = {column.name: column.type for column in shown["comparison"].schema.columns}
    assert (types["configuración"], types["MRR"]) == ("string", "float")
    page = Path(shown["report"])
    assert page.name == "evaluation.html"
    assert "baseline" in page.read_text("utf-8")

    project.query("INSERT INTO notes (content) VALUES ('Una nota nueva.')")
    stale = materialised(project.run(REPORT), REPORT)[None]
    assert "best_hit_rate_at_10" not in stale
    assert "obsoleta" in stale["comparison"].records[0].data.values()
    assert "<td>obsoleta</td>" in Path(stale["report"]).read_text("utf-8")
