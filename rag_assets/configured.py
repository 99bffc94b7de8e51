"""The models and named retrieval configurations this code location was loaded with."""

from functools import cache

from rag_resources.configurations import load_configurations
from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig, Role
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.messages import Message
from rag_resources.providers.registry import MODEL_NAMES
from rag_resources.settings import Settings, settings


@cache
def embedding_models() -> tuple[str, ...]:
    """Return the models whose chunk vectors are assets.

    Raises:
        InvalidConfigurationError: As `check_models`.
    """
    check_models(settings())
    return settings().embedding_models


def check_models(own: Settings) -> None:
    """Refuse settings that name no model: assets and tables are called after models.

    Raises:
        InvalidConfigurationError: With every bad variable named, and what it may say.
    """
    named = {
        "EMBEDDING_MODELS": own.embedding_models,
        "NOTE_EMBEDDING_MODEL": (own.note_embedding_model,),
        "LEGACY_EMBEDDING_MODEL": tuple(filter(None, [own.legacy_embedding_model])),
    }
    known = ", ".join(MODEL_NAMES)
    problems = [
        f"{variable}: {Message.PROBLEM_CHOICE.format(value=model, expected=known)}"
        for variable, models in named.items()
        for model in models
        if model not in MODEL_NAMES
    ]
    if problems:
        raise InvalidConfigurationError(Message.INVALID_SETTINGS, problems)


@cache
def configurations() -> dict[str, NamedConfiguration]:
    """Return every named configuration whose vectors are made, by name.

    Raises:
        InvalidConfigurationError: A file is not valid, or its model is unknown.
    """
    own = settings()
    made = {"chunks": own.embedding_models, "notes": (own.note_embedding_model,)}
    found = {
        name: item
        for name, item in load_configurations(own.configuration_folders).items()
        # A model that exists but is switched off takes its configurations along.
        if item.retrieval.model in made[item.retrieval.unit]
        or item.retrieval.model not in MODEL_NAMES
    }
    problems = [
        f"{item.name}: "
        + Message.CONFIGURATION_MODEL.format(
            model=item.retrieval.model, known=", ".join(own.all_models)
        )
        for item in found.values()
        if item.retrieval.model not in MODEL_NAMES
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
