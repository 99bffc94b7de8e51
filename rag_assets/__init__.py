"""Dagster only: assets, checks, jobs, schedules, sensors; what they call is `rag_resources`."""

import warnings

from dagster import BetaWarning

# Backfill policies are what a migration in batches rests on; that they are marked beta is known.
warnings.filterwarnings("ignore", message=".*backfill_policy", category=BetaWarning)
