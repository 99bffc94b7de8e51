"""The staleness in the UI of months that were chunked with other settings."""

import json
import os
import subprocess
import sys

from dagster_project import MONTHS, Project

# Another process, as a code location is loaded anew: definitions are made of the settings.
STATUSES = """
import json, sys
import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from rag_assets.definitions import defs

with dg.DagsterInstance.get() as instance:
    resolver = CachingStaleStatusResolver(
        instance, defs().resolve_asset_graph(), LoadingContextForTest(instance)
    )
    key = dg.AssetKey("chunks")
    found = {
        month: [
            resolver.get_status(key, month).value,
            *(cause.reason for cause in resolver.get_stale_causes(key, month)),
        ]
        for month in sys.argv[1:]
    }
    print(json.dumps(found))
"""


def statuses(**variables: str) -> dict[str, str]:
    """The months as a new code location sees them: fresh or stale, and why."""
    done = subprocess.run(
        [sys.executable, "-c", STATUSES, *MONTHS],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | variables,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return {month: ": ".join(words) for month, words in found.items()}


def test_months_chunked_in_another_way_are_shown_as_such(indexed: Project) -> None:
    """By the version of the asset's code, which is the way of chunking."""
    assert statuses() == dict.fromkeys(MONTHS, "FRESH")
    changed = statuses(CHUNKING_MAX_TOKENS="256")
    assert changed == dict.fromkeys(MONTHS, "STALE: has a new code version")
