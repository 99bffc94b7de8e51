"""Notes to chunks to vectors, in batches that a kill at any moment leaves whole."""
