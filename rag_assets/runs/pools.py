"""What runs share and may exhaust: an asset names its pool, a run holds those of all its assets.

How many runs a pool takes at a time is said in `dagster.yaml`, or in the UI under Deployment,
Concurrency. Evaluations and questions are in none: a backfill never makes them wait.
"""

DATABASE_WRITES = "database_writes"
EMBEDDED_MODELS = "embedded_models"
OLLAMA = "ollama"
POOLS = (DATABASE_WRITES, EMBEDDED_MODELS, OLLAMA)


def model_pool(model: str) -> str:
    """Return the pool of a model: the server it runs on, or the cores of this machine."""
    return OLLAMA if model.startswith("ollama") else EMBEDDED_MODELS
