"""How many of the exact nearest chunks an HNSW index finds."""

from benchmarks.corpus import MODEL
from rag_resources.core.types import Vectors
from rag_resources.database.pool import Database

NEAREST = 10


def recall(database: Database, vectors: Vectors) -> float:
    """Return the share of the exact ten nearest chunks of each vector that the index finds."""
    nearest = (
        f"SELECT chunk_id FROM vectors_{MODEL.name}_chunk ORDER BY "
        f"embedding::halfvec({MODEL.dimension}) <=> %s::halfvec({MODEL.dimension}) LIMIT {NEAREST}"
    )
    found = 0
    with database.transaction() as connection:
        for vector in vectors:
            connection.execute("SET LOCAL enable_indexscan = on")
            by_index = set(connection.execute(nearest, (vector,)))
            connection.execute("SET LOCAL enable_indexscan = off")
            found += len(by_index.intersection(connection.execute(nearest, (vector,))))
    return found / (NEAREST * len(vectors))
