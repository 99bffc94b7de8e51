"""The drift check of the questions, and the questions that an import deletes."""

import pytest
from dagster_project import GOLDEN, Project, materialised

from rag_resources.languages.messages import _


def test_what_the_source_takes_away_is_named_and_a_person_s_question_stays(
    indexed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a file or without; only what came from the file goes with it."""
    added = "¿Quién añadió esta pregunta?"
    indexed.query(
        "INSERT INTO golden_dataset (query, normalized_query, relevant_note_ids, expected_answer,"
        " category, difficulty) SELECT %s, lower(%s), relevant_note_ids, 'Una persona.', category,"
        " difficulty FROM golden_dataset LIMIT 1",
        *(added, added),
    )
    total = len(indexed.corpus.questions()) + 1
    with monkeypatch.context() as patch:
        patch.setenv("GOLDEN_SOURCE", "")
        kept = materialised(indexed.run(GOLDEN), GOLDEN)[None]
    assert (kept["questions"], kept["deleted"]) == (total, 0)

    gone, *left = indexed.corpus.questions()
    indexed.corpus.ask(left)
    result = indexed.run(GOLDEN)
    taken = materialised(result, GOLDEN)[None]
    assert (taken["questions"], taken["deleted"], taken["inserted"]) == (total - 1, 1, 0)
    assert taken["deleted_questions"] == f"- {gone['query']}\n\n" + _(
        "What was there is kept in the table golden_history."
    )
    assert indexed.query("SELECT count(*) FROM golden_dataset WHERE query = %s", added) == [(1,)]
    origins = indexed.query("SELECT origin FROM golden_history ORDER BY id DESC LIMIT 1")
    assert origins == [(f"{indexed.corpus.golden.name} ({result.run_id})",)]
