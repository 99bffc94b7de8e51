"""The pools of shared resources. An asset names its pool; a run occupies the pools of its assets.

The limit of a pool is set in `dagster.yaml`, or in the UI under Deployment, Concurrency.
Evaluations and questions use no pool, so that they never wait for a backfill.
"""

DATABASE_WRITES = "database_writes"
EMBEDDED_MODELS = "embedded_models"
OLLAMA = "ollama"
POOLS = (DATABASE_WRITES, EMBEDDED_MODELS, OLLAMA)


def model_pool(model: str) -> str:
    """Return a model's pool, which stands for its server or for this machine's cores."""
    return OLLAMA if model.startswith(("ollama", "openai")) else EMBEDDED_MODELS
