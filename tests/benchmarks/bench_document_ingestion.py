"""Documents from files to vectors: `python -m tests.benchmarks.bench_document_ingestion FOLDER`.

FOLDER has documents, in folders below it too. They are read by one reader and by two at once,
alternately and each time into an empty database; then what is there is chunked and embedded with
the default model. Prints pages a minute, and how much faster two readers are than one.
"""

import argparse
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.database.locate import database_url, embedded_server, open_database
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.documents.applying import apply_window
from rag_resources.documents.arrival import arrive
from rag_resources.documents.extracting import extract_window
from rag_resources.documents.folder import folder_files
from rag_resources.files import LocalFiles
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.providers.protocols import Embedder
from rag_resources.providers.registry import build_embedder
from rag_resources.settings import load_settings
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.models import register_model
from rag_resources.store.vector_indexes import ensure_vector_indexes
from tests.benchmarks.bench_indexing import EVERYTHING
from tests.benchmarks.targets import report

MODEL = "use_multilingual"
TENANT = "default"
ROUNDS = 3
PAGES_A_MINUTE = 200
EMPTY = "TRUNCATE documents, notes, tombstones CASCADE"


def read(database: Database, folder: Path, files: Path, readers: int) -> tuple[int, float]:
    """Read all documents into an empty database; the pages, and the seconds from file to note."""
    with database.transaction() as connection:
        connection.execute(EMPTY)
    config, store = ExtractionConfig(parallel=readers), LocalFiles(files)
    found = folder_files(folder)
    started = time.perf_counter()
    arrive(database, store, found, config=config, tenant=TENANT, source="documents")
    pages = extract_window(database, store, EVERYTHING, config, tenant=TENANT).pages
    apply_window(database, EVERYTHING, tenant=TENANT)
    return pages, time.perf_counter() - started


def measure(database: Database, folder: Path, files: Path, embedder: Embedder) -> None:
    """Print what reading costs with one reader and with two, and what comes after it."""
    seconds: dict[int, list[float]] = {1: [], 2: []}
    pages = 0
    for _ in range(ROUNDS):
        for readers, times in seconds.items():
            pages, taken = read(database, folder, files, readers)
            times.append(taken)
    one, two = (statistics.median(times) for times in seconds.values())
    report(f"{pages} pages, from file to note: {pages / one * 60:.0f} pages a minute by one reader")
    report(f"two readers at once: {one / two:.2f} times as fast")

    embedder.embed_queries(["carga del modelo"])
    started = time.perf_counter()
    with database.transaction() as connection:
        register_model(connection, embedder.info, embeds_chunks=True)
    chunk_window(database, EVERYTHING, ChunkingConfig())
    with database.transaction() as connection:
        refresh_statistics(connection)
    vectors = embed_chunks(database, embedder, EVERYTHING).vectors
    ensure_vector_indexes(database, embedder.info, min_rows=1)
    after = time.perf_counter() - started
    whole = pages / (two + after) * 60
    report(f"{vectors} passages embedded by {MODEL} in {after / (two + after):.0%} of the time")
    report(f"file to vector: {whole:.0f} pages a minute", met=whole >= PAGES_A_MINUTE)


def main() -> None:
    """Measure, and print with the targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)  # or a root's server keeps its data elsewhere
        settings = load_settings(rag_home=Path(home))
        embedder = build_embedder(MODEL)
        try:
            migrate(database_url(settings))
            with closing(open_database(settings)) as database:
                measure(database, folder, Path(home, "files"), embedder)
        finally:
            embedded_server(settings).down()


if __name__ == "__main__":
    main()
