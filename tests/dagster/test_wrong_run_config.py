"""Wrong run configurations of every job: the run says place, cause and remedy, without a stack."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from dagster_project import Corpus, Project, definitions, failure_texts, opened

from rag_resources.database.server import EmbeddedServer
from rag_resources.languages.messages import _
from tests.databases import cloned

FOREIGN = re.compile(r"\bNone\b|Traceback|\w+Error\b|is not|must be|<class|validation|pydantic")
"""What must never reach a user."""
ASKED: dict[str, Any] = {"question": "¿qué dijo el pediatra?", "configuration": "hybrid_use"}
WHY: dict[str, Any] = {"reason": "Prueba."}
IMMEDIATE = ("rollback_immediate", "drop_migration")
PARTIAL = ("rollback_partial", "stop_migration")
WITHDRAW = ("rollback_promotion", "withdraw_promotion")
RETIRE = ("retire_model", "retire_embedding_model")
COMPARE = ("compare", "compare_evaluations")
RETRIEVE = ("retrieve", "retrieve_passages")
ASK = ("ask", "answer_question")
PROMOTE = ("promote", "promoted_config")

WRONG: list[tuple[tuple[str, str], dict[str, Any], list[str]]] = [
    (RETRIEVE, {"question": " "}, [_("The question is empty. Write what you want to find.")]),
    (RETRIEVE, {"question": "¿?"}, ["ninguna palabra que buscar"]),
    (RETRIEVE, {**ASKED, "top_k": -1}, ["entre 1 y 50", "-1"]),
    (RETRIEVE, {**ASKED, "top_k": 51}, ["entre 1 y 50", "51"]),
    (RETRIEVE, {**ASKED, "strategy": "mágica"}, ["strategy", "«mágica»", "hybrid"]),
    (RETRIEVE, {**ASKED, "configuration": "hibrid_use"}, ["«hibrid_use»", "hybrid_use"]),
    (RETRIEVE, {**ASKED, "overrides": {"model": "nada"}}, ["«nada»", "use_multilingual"]),
    (RETRIEVE, {**ASKED, "overrides": {"strategi": "x"}}, ["strategi", "strategy"]),
    (RETRIEVE, {**ASKED, "filters": {"created_from": "ayer"}}, ["created_from", "«ayer»"]),
    (RETRIEVE, {**ASKED, "filters": {"etiqueta": "x"}}, ["etiqueta", "clave desconocida"]),
    (RETRIEVE, {**ASKED, "language": "de"}, ["«de»", "es, fr, en"]),
    (ASK, {**ASKED, "top_k": -3}, ["entre 1 y 50", "-3"]),
    (ASK, {"question": ""}, [_("The question is empty. Write what you want to find.")]),
    (COMPARE, {"before": "rapida", "after": "nada"}, ["rapida"]),
    (PROMOTE, {"configuration": "nada"}, ["nada"]),
    (RETIRE, {"model": "nada"}, ["nada"]),
    (RETIRE, {"model": "use_multilingual"}, ["No se ha cambiado nada", "confirm"]),
    (IMMEDIATE, WHY, ["No se ha cambiado nada", _("delete")]),
    (IMMEDIATE, {"confirm": _("delete")}, ["motivo"]),
    (
        IMMEDIATE,
        {**WHY, "confirm": _("delete"), "accept_missing": -1},
        ["accept_missing", "-1", "0"],
    ),
    (PARTIAL, {**WHY, "confirm": "sí"}, ["No se ha cambiado nada", _("stop")]),
    (WITHDRAW, {**WHY, "withdraw": "nada"}, ["nada"]),
    (WITHDRAW, WHY, ["No se ha cambiado nada"]),
    (("resume_migration", "lift_hold"), {"reason": " "}, ["motivo"]),
]


@pytest.fixture(scope="module")
def asked(
    server: EmbeddedServer,
    indexed_templates: tuple[str, str],
    corpus: Corpus,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Project]:
    """An indexed project for all of them: what is refused changes nothing."""
    home = tmp_path_factory.mktemp("asked")
    with cloned(server, *indexed_templates) as (database, dagster):
        own = corpus.copy(home)
        with opened(home / "home", server.dsn(database), server.dsn(dagster), own) as made:
            yield made


@pytest.mark.parametrize(
    ("job", "config", "said"), WRONG, ids=[f"{job[0]} {config}"[:60] for job, config, _ in WRONG]
)
def test_a_wrong_run_configuration_is_refused_in_words(
    asked: Project, job: tuple[str, str], config: dict[str, Any], said: list[str]
) -> None:
    """Dagster itself refuses unknown fields and other types, before a run is made."""
    name, op = job
    result = (
        definitions()
        .resolve_job_def(name)
        .execute_in_process(
            instance=asked.instance,
            raise_on_error=False,
            run_config={"ops": {op: {"config": config}}},
        )
    )
    assert not result.success
    told = failure_texts(result)
    for part in said:
        assert part in told
    assert not FOREIGN.search(told)
    (failure,) = result.get_step_failure_events()
    assert failure.step_failure_data.user_failure_data is not None  # A page shows this, no stack.
