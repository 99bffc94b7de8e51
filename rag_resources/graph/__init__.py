"""The causal graph: names in notes, causes that notes state, and the decisions of people."""
