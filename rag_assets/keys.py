"""The names by which definitions refer to each other: asset keys, pools, owners and tags."""

import dagster as dg

from rag_resources.core.graph_version import GraphPart

DOCUMENTS = dg.AssetKey("documents")


DOCUMENT_PAGES = dg.AssetKey("document_pages")


NOTES = dg.AssetKey("notes")


NOTE_EMBEDDINGS = dg.AssetKey("note_embeddings")


CHUNKS = dg.AssetKey("chunks")


MIGRATION_STATUS = dg.AssetKey("migration_status")


GOLDEN_DATASET = dg.AssetKey("golden_dataset")


EVALUATION_REPORT = dg.AssetKey("evaluation_report")


ANSWER_LOG = dg.AssetKey("answer_log")


PROMOTED_CONFIG = dg.AssetKey("promoted_config")


OWNERS = ["team:datos"]


EMBEDDINGS, _EVALUATIONS = "embeddings", "evaluation_results"


ALL_EMBEDDINGS = dg.AssetSelection.key_prefixes(EMBEDDINGS)


ALL_EVALUATIONS = dg.AssetSelection.key_prefixes(_EVALUATIONS)


def embeddings_key(model: str) -> dg.AssetKey:
    """Return the asset key of a model's chunk vectors."""
    return dg.AssetKey([EMBEDDINGS, model])


def graph_key(part: GraphPart) -> dg.AssetKey:
    """Return the asset key of a part of the causal graph."""
    return dg.AssetKey(part.value)


GRAPH = tuple(map(graph_key, GraphPart))


def evaluation_key(configuration: str) -> dg.AssetKey:
    """Return the asset key of a configuration's evaluations."""
    return dg.AssetKey([_EVALUATIONS, configuration])


DATABASE_WRITES = "database_writes"


EMBEDDED_MODELS = "embedded_models"


OLLAMA = "ollama"


POOLS = (DATABASE_WRITES, EMBEDDED_MODELS, OLLAMA)


def model_pool(model: str) -> str:
    """Return a model's pool, which stands for its server or for this machine's cores."""
    return OLLAMA if model.startswith(("ollama", "openai")) else EMBEDDED_MODELS


MAIN_JOB = ".dagster/main_job"
"""Tag of the main job's runs, which index what they ingest."""
