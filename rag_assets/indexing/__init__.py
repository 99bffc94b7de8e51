"""Chunks and embeddings: their assets, checks and the job that retires a model."""
