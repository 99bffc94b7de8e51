"""The causal graph: its assets and their checks."""
