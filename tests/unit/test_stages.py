"""What a retrieval tells about its stages: times, failures, log records."""

import pytest
from structlog.testing import capture_logs

from rag_resources.retrieval.stages import Stages

QUERY = "¿Dónde guardé el pasaporte?"


@pytest.fixture
def stages() -> Stages:
    return Stages(config_hash=lambda: "0123456789abcdef", query=QUERY)


def test_times_of_a_repeated_stage_add_up_in_the_order_of_the_first_run(stages: Stages) -> None:
    with stages.run("search"):
        pass
    first = stages.timings["search"]
    with stages.run("fuse"):
        pass
    with stages.run("search"):
        pass
    assert list(stages.timings) == ["search", "fuse"]
    assert stages.timings["search"] > first > 0
    assert stages.elapsed_ms >= sum(stages.timings.values())


def test_a_required_stage_that_fails_is_timed_and_raises(stages: Stages) -> None:
    with pytest.raises(ZeroDivisionError), stages.run("fetch"):
        raise ZeroDivisionError
    assert list(stages.timings) == ["fetch"]
    assert stages.degraded == ()


def test_an_optional_stage_that_fails_is_noted_and_the_others_go_on(stages: Stages) -> None:
    with (
        capture_logs() as logs,
        stages.optional("rerank", component="reranker") as attempt,
    ):
        assert not attempt.failed
        raise ZeroDivisionError(f"{QUERY} SELECT secret")
    assert attempt.failed
    assert isinstance(attempt.error, ZeroDivisionError)
    assert stages.degraded == ("rerank",)
    assert stages.failures == {"rerank": attempt.error}
    assert list(stages.timings) == ["rerank"]
    warning, debug = logs
    assert warning.pop("elapsed_ms") >= 0
    assert warning == {
        "event": "retrieval_degraded",
        "log_level": "warning",
        "component": "reranker",
        "stage": "rerank",
        "error": "ZeroDivisionError",
        "config_hash": "0123456789abcdef",
    }
    assert (debug["log_level"], debug["query"]) == ("debug", QUERY)
