"""The retrievers: what each asks of models and database to make its ranked lists.

Their names, weights and stand-ins are `core.retrievers` and a configuration's; asking several of
them, whatever fails, is `retrieval.finding`.
"""

from collections.abc import Mapping

from rag_resources.core.retrievers import RetrieverName
from rag_resources.retrieval.retrievers.fulltext import FulltextRetriever
from rag_resources.retrieval.retrievers.protocol import Retriever
from rag_resources.retrieval.retrievers.semantic import SemanticRetriever

RETRIEVERS: Mapping[RetrieverName, Retriever] = {
    RetrieverName.SEMANTIC: SemanticRetriever(),
    RetrieverName.FULLTEXT: FulltextRetriever(),
}
