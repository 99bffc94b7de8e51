"""Dagster only: assets, checks, jobs, schedules, sensors. The work is done in `rag_resources`."""
