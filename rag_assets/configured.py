"""The named retrieval configurations this code location was loaded with."""

from functools import cache

from rag_resources.configurations import load_configurations
from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig, Role
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.messages import Message
from rag_resources.providers.registry import EMBEDDED_MODELS
from rag_resources.settings import settings


@cache
def configurations() -> dict[str, NamedConfiguration]:
    """Return every named configuration whose model is configured, by name.

    Raises:
        InvalidConfigurationError: A file is not valid, or its model is unknown.
    """
    known = settings().all_models
    found = {
        name: item
        for name, item in load_configurations(settings().configuration_folders).items()
        # A model that exists but is switched off takes its configurations along.
        if item.retrieval.model in known or item.retrieval.model not in EMBEDDED_MODELS
    }
    problems = [
        f"{item.name}: "
        + Message.CONFIGURATION_MODEL.format(model=item.retrieval.model, known=", ".join(known))
        for item in found.values()
        if item.retrieval.model not in known
    ]
    if problems:
        raise InvalidConfigurationError(Message.INVALID_CONFIGURATIONS, problems)
    return found


def representative(model: str) -> RetrievalConfig:
    """Return the configuration that stands for a model: its first candidate, else the defaults."""
    for item in configurations().values():
        if item.role is Role.CANDIDATE and item.retrieval.model == model:
            return item.retrieval
    return RetrievalConfig(model=model)
