"""The check that reports configuration files that were left out."""

import dagster as dg

from rag_assets.configured import Configured
from rag_assets.keys import EVALUATION_REPORT
from rag_resources.core.messages import Message


def build_configurations_check(configured: Configured) -> dg.AssetChecksDefinition:
    """Build the check that names the problem of each file that has no asset because of it."""
    problems = configured.configurations.problems

    @dg.asset_check(asset=EVALUATION_REPORT, description=Message.CHECK_CONFIGURATIONS)
    def configurations_valid() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(
            passed=not problems,
            severity=dg.AssetCheckSeverity.WARN,
            description="\n".join(f"- {problem}" for problem in problems) or None,
        )

    return configurations_valid
