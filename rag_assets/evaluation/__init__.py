"""Golden dataset and evaluations: their assets, checks and jobs."""
