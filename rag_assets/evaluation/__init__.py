"""The golden dataset and evaluations: assets, checks and jobs."""
