"""The check that reports configuration files that were left out, and the sensor that keeps it true.

A file that cannot be read has no asset, so the check alone can say in the UI what became of it.
"""

import json
from collections.abc import Sequence

import dagster as dg

from rag_assets.configured import Configured, read_configured
from rag_assets.keys import EVALUATION_REPORT
from rag_resources.languages.messages import _

CHECK = "configurations_valid"


def build_configurations_check(configured: Configured) -> dg.AssetChecksDefinition:
    """Build the check that names the problem of each file that has no asset because of it."""

    @dg.asset_check(
        asset=EVALUATION_REPORT, name=CHECK, description=_("All files of configurations are valid.")
    )
    def configurations_valid() -> dg.AssetCheckResult:
        problems = configured.configurations.problems
        return dg.AssetCheckResult(
            passed=not problems,
            severity=dg.AssetCheckSeverity.WARN,
            description=_listed(problems),
        )

    return configurations_valid


def build_configuration_files_sensor(configured: Configured) -> dg.SensorDefinition:
    """Build the sensor that reads the files again and tells their problems without a run."""

    @dg.sensor(
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=_(
            "Reads the configuration files again and says in their check, configurations_valid of "
            "evaluation_report, which have an error; it starts nothing."
        ),
    )
    def configuration_files(
        context: dg.SensorEvaluationContext,
    ) -> dg.SensorResult | dg.SkipReason:
        """Report the check when what it says has changed; the cursor holds what it said last.

        Assets are those of the files as they were when the definitions were loaded. If others are
        there now, it says how to load them.
        """
        found = read_configured(configured.settings).configurations
        told = list(found.problems)
        if set(found) != set(configured.configurations):
            told.append(
                _(
                    "Files have been added, removed or broken since the definitions were loaded: "
                    "press “Reload definitions” (Deployment), so that the assets are those of now."
                )
            )
        cursor = json.dumps(told)
        if cursor == (context.cursor or "[]"):
            return dg.SkipReason(_("There is nothing to do."))
        result = dg.AssetCheckEvaluation(
            asset_key=EVALUATION_REPORT,
            check_name=CHECK,
            passed=not told,
            metadata={},
            severity=dg.AssetCheckSeverity.WARN,
            description=_listed(told),
            blocking=False,
        )
        skipped = dg.SkipReason(_("Told in the check configurations_valid of evaluation_report."))
        return dg.SensorResult(asset_events=[result], cursor=cursor, skip_reason=skipped)

    return configuration_files


def _listed(problems: Sequence[str]) -> str | None:
    return "\n".join(f"- {problem}" for problem in problems) or None
