"""The retrievers: what each needs from models and database to make its ranked lists.

Their names and stand-ins are in `core.retrievers`, their weights in a configuration. Running
several of them, and handling failures, is in `retrieval.finding`.
"""

from collections.abc import Mapping

from rag_resources.core.retrievers import RetrieverName
from rag_resources.retrieval.retrievers.fulltext import FulltextRetriever
from rag_resources.retrieval.retrievers.graph import GraphRetriever
from rag_resources.retrieval.retrievers.protocol import Retriever
from rag_resources.retrieval.retrievers.semantic import SemanticRetriever
from rag_resources.retrieval.retrievers.windows import WindowsRetriever

RETRIEVERS: Mapping[RetrieverName, Retriever] = {
    RetrieverName.SEMANTIC: SemanticRetriever(),
    RetrieverName.WINDOWS: WindowsRetriever(),
    RetrieverName.FULLTEXT: FulltextRetriever(),
    RetrieverName.GRAPH: GraphRetriever(),
}
