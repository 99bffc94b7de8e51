"""The causal graph: names in notes, and causes that notes state."""
