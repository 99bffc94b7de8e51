"""Documents: assets and checks."""
