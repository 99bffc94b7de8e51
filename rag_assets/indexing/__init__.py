"""Chunks and embeddings: assets, checks, and the job that retires a model."""
