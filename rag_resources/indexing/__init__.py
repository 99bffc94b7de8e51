"""Turns notes into chunks and chunks into vectors, in batches that survive a kill."""
