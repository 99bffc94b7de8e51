"""The job that retires a model: asked twice, refused while the model is used, told what went."""

from typing import Any

import dagster as dg
import pytest
from dagster_project import Project, by_field, definitions, failure_texts

from rag_resources.languages.messages import _

USED = "use_multilingual"


def retire(project: Project, **config: str) -> dg.ExecuteInProcessResult:
    """Run the job `retire_model`."""
    return (
        definitions()
        .resolve_job_def("retire_model")
        .execute_in_process(
            instance=project.instance,
            raise_on_error=False,
            run_config={"ops": {"retire_embedding_model": {"config": config}}},
        )
    )


def output_metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """Return what the op says of its output."""
    output = next(event for event in result.all_events if event.is_successful_output)
    metadata = output.step_output_data.metadata
    return by_field(metadata)


def failure_metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """Return what the op says of its failure."""
    (failure,) = result.get_step_failure_events()
    user_failure = failure.step_failure_data.user_failure_data
    assert user_failure
    return by_field(user_failure.metadata)


def vectors(project: Project) -> tuple[int, int]:
    """How many chunks and notes have vectors of the model."""
    query = "SELECT count(*) FROM vectors WHERE kind = %s AND model = %s"
    return tuple(project.query(query, kind, USED)[0][0] for kind in ("chunk", "note"))


def test_a_model_is_retired_once_it_is_confirmed_and_nothing_names_it(
    indexed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would go is told first, what went afterwards; doing it again changes nothing."""
    before = vectors(indexed)
    assert min(before) > 0

    asked = retire(indexed, model=USED)
    assert not asked.success
    assert "No se ha cambiado nada" in failure_texts(asked)
    would_go = failure_metadata(asked)
    assert (would_go["chunk_vectors"], would_go["note_vectors"]) == before
    assert would_go["bytes"] > 0
    assert "hybrid_use" in would_go["configurations"]

    refused = retire(indexed, model=USED, confirm=USED)
    assert not refused.success
    assert _(
        "it is in EMBEDDING_MODELS, so the next backfill would make it again: remove “{model}” "
        "from EMBEDDING_MODELS and restart"
    ).format(model=USED) in failure_texts(refused)
    assert _(
        "it is that of the whole notes: set another one in NOTE_EMBEDDING_MODEL, restart and "
        "materialise note_embeddings"
    ) in failure_texts(refused)
    assert vectors(indexed) == before

    monkeypatch.setenv("EMBEDDING_MODELS", "e5_small")
    monkeypatch.setenv("NOTE_EMBEDDING_MODEL", "e5_small")
    done = retire(indexed, model=USED, confirm=USED)
    assert done.success, failure_texts(done)
    assert output_metadata(done) == would_go
    assert vectors(indexed) == (0, 0)

    again = retire(indexed, model=USED, confirm=USED)
    assert again.success, failure_texts(again)
    told = output_metadata(again)
    assert (told["chunk_vectors"], told["note_vectors"], told["bytes"]) == (0, 0, 0)
