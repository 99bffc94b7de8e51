"""The re-rankers of the product, by name. To add one, write a file in this folder and a line here.

The recipe is in docs/extending.md.
"""

from rag_resources.core.errors import InvalidConfigurationError, ProviderError
from rag_resources.languages.messages import _
from rag_resources.providers.protocols import Embedder, LanguageModel, Reranker
from rag_resources.retrieval.rerank_sentences import SentenceReranker

KNOWN_RERANKERS = ("sentences", "llm")


def build_reranker(
    name: str, *, embedder: Embedder, language_model: LanguageModel | None, batch_size: int
) -> Reranker:
    """Return the re-ranker of this name; creating one loads nothing.

    Args:
        name: One of `KNOWN_RERANKERS`.
        embedder: Embeds sentences.
        language_model: None if none is configured.
        batch_size: Passages per call of the language model, >= 1.

    Raises:
        ProviderError: The re-ranker needs a language model and none is configured.
        InvalidConfigurationError: No re-ranker has this name.
    """
    if name == "sentences":
        return SentenceReranker(embedder)
    if name == "llm":
        if language_model is None:
            raise ProviderError(
                _(
                    "Re-ranking with “llm” needs a language model: name one in LLM_MODEL, or use "
                    "reranking.method: sentences."
                )
            )
        from rag_resources.retrieval.rerank_llm import LanguageModelReranker

        return LanguageModelReranker(language_model, batch_size)
    raise InvalidConfigurationError(
        _("{origin} is not valid; nothing was changed:").format(origin="reranking.method"),
        [
            _("“{value}” is not one of the options: {expected}").format(
                value=name, expected=", ".join(KNOWN_RERANKERS)
            )
        ],
        name=name,
    )
