"""How runs start, queue, share pools, process months and report failures."""
