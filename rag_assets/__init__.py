"""Dagster only: assets, checks, jobs, schedules, sensors; what they call is `rag_resources`."""
