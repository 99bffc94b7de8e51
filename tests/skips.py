"""Which tests may be skipped, and for which reason. Any other skip is a failure.

A pytest plugin, loaded by `conftest`. It shows tests whose requirements are not installed.
"""

from collections.abc import Generator
from typing import Any

import pytest

NO_OLLAMA = {
    "OLLAMA_HOST is not set",
    "OPENAI_BASE_URL is not set",
    "the server has no model that can chat",
}
NOT_ROOT = {"switches accounts, as only root may"}
NOT_LINUX = {"looks into /proc"}

ALLOWED: dict[str, set[str]] = {
    # A real model server.
    "test_a_real_server_gives_the_same_vector_alone_and_in_a_batch": NO_OLLAMA,
    "test_a_real_model_answers_in_the_shape_asked_for": NO_OLLAMA,
    "test_a_real_model_streams": NO_OLLAMA,
    "test_a_real_server_embeds": NO_OLLAMA,
    # What a file system cannot do.
    "test_a_file_time_outside_the_calendar_is_rejected": {"the file system keeps no such time"},
    "test_a_name_that_is_not_utf8_is_rejected": {"the file system takes no such name"},
    # What another account or system is needed for.
    "test_folder_prepared_by_another_user_is_refused": NOT_ROOT,
    "test_root_works_under_a_folder_closed_to_others": NOT_ROOT,
    "test_copied_home_does_not_share_the_data": NOT_ROOT,
    "test_lost_record_of_a_running_server_is_found_again": NOT_ROOT,
    "test_unreachable_binaries_are_copied_once": NOT_ROOT,
    "test_full_disk_is_explained": {*NOT_ROOT, *NOT_LINUX, "may not mount"},
    "test_a_full_disk_loses_no_note_and_doubles_none": {"may not mount"},
    "test_zombie_postmaster_counts_as_dead": NOT_LINUX,
    "test_small_shared_memory_is_avoided": NOT_LINUX,
    "test_no_secret_shows_in_files_or_processes": NOT_LINUX,
}
"""The reasons for which each of these may be skipped, by the name of its function."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test that is skipped without being allowed to."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        name = getattr(item, "originalname", item.name)
        _refuse(report, allowed=ALLOWED.get(name, set()))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """Fail a file that is skipped as a whole."""
    report = yield
    if report.skipped:
        _refuse(report, allowed=set())
    return report


def _refuse(report: Any, *, allowed: set[str]) -> None:
    reason = str(report.longrepr[2]).removeprefix("Skipped: ")
    if reason not in allowed:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} may not be skipped ({reason}): see tests/skips.py"
