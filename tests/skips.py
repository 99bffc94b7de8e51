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
NO_BROWSER = {"no Chromium is installed (Debian: apt-get install chromium)"}
NO_PGBOUNCER = {"no pgbouncer is installed (Debian: apt-get install pgbouncer)"}
NO_PROXY = {
    "nginx is not installed (Debian: apt-get install nginx)",
    "caddy is not installed (Debian: apt-get install caddy)",
}
NOT_LINUX = {"looks into /proc"}

ALLOWED: dict[str, set[str]] = {
    # A real model server.
    "test_it_answers_in_the_shape_asked_for": NO_OLLAMA,
    "test_a_stream_comes_in_pieces_and_its_end_tells_what_it_took": NO_OLLAMA,
    "test_a_stream_that_is_left_leaves_the_server_ready": NO_OLLAMA,
    "test_it_is_left_at_the_deadline": NO_OLLAMA,
    "test_a_prompt_that_is_too_long_is_refused_with_advice": NO_OLLAMA,
    "test_an_answer_cites_passages_that_exist_and_says_what_they_say": NO_OLLAMA,
    "test_vectors_are_unit_vectors_and_the_same_alone_and_in_a_batch": NO_OLLAMA,
    # What a file system cannot do.
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
    "test_no_secret_shows_in_files_or_processes": NOT_LINUX,
    # A pooler, which no package of PyPI has; .ci/run installs it.
    "test_no_transaction_fails_or_runs_under_anothers_settings": NO_PGBOUNCER,
    "test_notes_are_indexed_and_found_as_without_it": NO_PGBOUNCER,
    # Proxies, which no package of PyPI has; .ci/run installs them.
    "test_nobody_is_the_owner_through_a_proxy": NO_PROXY,
    # A browser, which no package of PyPI has; .ci/run installs it.
    "test_a_question_is_answered_and_a_citation_opens_the_note_at_its_range": NO_BROWSER,
    "test_the_page_of_a_document_is_shown_with_the_cited_box": NO_BROWSER,
    "test_two_tenants_side_by_side_see_their_own_notes": NO_BROWSER,
    "test_filters_restrict_the_next_question": NO_BROWSER,
    "test_thumbs_are_stored": NO_BROWSER,
    "test_an_answer_becomes_a_golden_question_for_those_who_may": NO_BROWSER,
    "test_nothing_that_notes_or_file_names_say_is_run": NO_BROWSER,
    "test_the_page_fits_and_can_be_read": NO_BROWSER,
    "test_a_server_that_dies_leaves_what_had_arrived": NO_BROWSER,
    "test_documents_are_listed_and_added_by_those_who_may": NO_BROWSER,
    "test_answers_are_kept_in_the_browser_and_markdown_is_shown": NO_BROWSER,
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
