"""Notes: assets, checks and the purge job."""
