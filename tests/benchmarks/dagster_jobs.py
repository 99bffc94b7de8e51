"""Jobs of the code location on the Dagster instance of a RAG_HOME, each in a process of its own.

Settings are read once per process, so a data engineer restarts Dagster after changing `.env`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_resources.settings import load_settings


@dataclass(frozen=True)
class Dagster:
    """Runs jobs on the instance of a RAG_HOME, each in a process with the settings given."""

    environment: Mapping[str, str]

    def run(self, job: str, *, changes: Mapping[str, str], **options: Any) -> str:
        """Run a job to its end and return why it failed, empty if it did not."""
        result = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.dagster_jobs", job],
            env={**os.environ, **self.environment, **changes},
            input=json.dumps(options),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return result.stdout.strip()

    def done(self, job: str, *, changes: Mapping[str, str], **options: Any) -> None:
        """Run a job that must succeed."""
        reason = self.run(job, changes=changes, **options)
        if reason:
            raise SystemExit(f"{job}: {reason}")


def run_job(job: str, options: Mapping[str, Any]) -> None:
    """Run one job in this process; what its failed steps said goes to standard output."""
    from rag_assets.instance import prepare  # the definitions read the environment

    settings = load_settings()
    prepare(settings, migrating=True)
    import dagster as dg

    from rag_assets.definitions import defs
    from rag_assets.runs.failures import failure_reasons
    from rag_assets.runs.partitions import monthly

    months = monthly(settings).get_partition_keys()[slice(*options.get("months", (None,)))]
    tags = {
        "dagster/asset_partition_range_start": months[0],
        "dagster/asset_partition_range_end": months[-1],
    }
    assets = [dg.AssetKey(key) for key in options.get("assets", [])]
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    with dg.DagsterInstance.get() as instance:
        result = defs.resolve_job_def(job).execute_in_process(
            instance=instance,
            raise_on_error=False,
            run_config={**quiet, **options.get("run_config", {})},
            tags=tags if "months" in options else {},
            **({"asset_selection": assets} if assets else {}),
        )
    sys.stdout.write(failure_reasons(result.all_events))


if __name__ == "__main__":
    run_job(sys.argv[1], json.load(sys.stdin))
