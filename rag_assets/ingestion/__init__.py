"""Notes: their assets, checks and the purge job."""
