"""How runs start, queue, share pools, go through months and report failures."""
