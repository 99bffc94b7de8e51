"""The causal graph: what notes are about, what they say is a cause, and what a person decides."""
