"""A migration's batches, its quality gate and its status."""
