"""Conditions under which Dagster materialises assets by itself."""

from collections.abc import Iterable, Sequence
from typing import Any

import dagster as dg

from rag_assets.keys import MAIN_JOB, embeddings_key, evaluation_key


def when_months_change() -> dg.AutomationCondition[Any]:
    """Return the condition for monthly assets to be made again after their inputs.

    It is `eager()` with two differences. An earlier month is made again, too, if it was made
    before: a note of that month may be edited, deleted or added late. And a month that was never
    made waits for a backfill, because a migration proceeds in batches, or was undone on purpose.
    What the main job updates is left to the main job: it ingests every month and indexes only if
    anything waits.
    """
    wanted = dg.AutomationCondition.in_latest_time_window() | ~dg.AutomationCondition.missing()
    by_others = (
        dg.AutomationCondition.newly_updated()
        & ~dg.AutomationCondition.executed_with_root_target()
        & ~dg.AutomationCondition.all_new_updates_have_run_tags(tag_keys={MAIN_JOB})
    )
    updated: dg.AutomationCondition[Any] = dg.AutomationCondition.any_deps_updated().replace(
        "newly_updated_without_root", by_others
    )
    return (
        wanted
        & updated.since_last_handled()
        & ~dg.AutomationCondition.any_deps_missing()
        & ~dg.AutomationCondition.any_deps_in_progress()
        & ~dg.AutomationCondition.in_progress()
    )


def after_batches(models: Sequence[str]) -> dg.AutomationCondition[Any]:
    """Return the condition that becomes true after every batch of any model.

    `eager()` would wait for all months and for the end of the backfill. A batch is over when its
    quality is known or when it has failed.
    """
    measured = dg.AutomationCondition.any_deps_match(
        dg.AutomationCondition.any_checks_match(dg.AutomationCondition.newly_updated()).allow(
            dg.AssetSelection.checks(
                *(dg.AssetCheckKey(embeddings_key(model), "retrieval_quality") for model in models)
            )
        )
    )
    failed = dg.AutomationCondition.any_deps_match(
        dg.AutomationCondition.execution_failed().newly_true()
    )
    condition = (measured | failed).since_last_handled() & ~dg.AutomationCondition.in_progress()
    return condition.with_label("after_batches")


def any_candidate_passes(candidates: Iterable[str]) -> dg.AutomationCondition[Any]:
    """Return the condition that one of the candidates passes its gate; it may be any of them.

    Only a check of a run counts, whatever its tags: what the command line or a person reports never
    promotes by itself.
    """
    gates = dg.AssetSelection.checks(
        *(dg.AssetCheckKey(evaluation_key(name), "hit_rate_gate") for name in candidates)
    )
    passed = dg.AutomationCondition.check_passed() & dg.AutomationCondition.executed_with_tags()
    return dg.AutomationCondition.any_deps_match(
        dg.AutomationCondition.any_checks_match(passed).allow(gates)
    )
