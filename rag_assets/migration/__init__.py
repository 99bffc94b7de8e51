"""The migration's status asset and the rollback jobs."""
