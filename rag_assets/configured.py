"""Settings with checked model names, and the named configurations that they select."""

from collections.abc import Mapping
from dataclasses import dataclass

from rag_resources.configurations import load_configurations
from rag_resources.core.configuration import NamedConfiguration, Role
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.messages import Message
from rag_resources.providers.registry import MODEL_NAMES
from rag_resources.settings import Settings


@dataclass(frozen=True)
class Configured:
    """Checked settings and the named configurations that they select.

    Attributes:
        settings: Every model in them exists.
        configurations: By name; only those whose model is switched on.
    """

    settings: Settings
    configurations: Mapping[str, NamedConfiguration]

    @property
    def models(self) -> tuple[str, ...]:
        """The models whose chunk vectors are assets."""
        return self.settings.embedding_models

    @property
    def window_models(self) -> tuple[str, ...]:
        """The models whose windows are assets: those that some configuration searches by them."""
        wanted = {
            item.retrieval.model
            for item in self.configurations.values()
            if item.retrieval.searches_windows
        }
        return tuple(model for model in self.models if model in wanted)

    @property
    def candidates(self) -> tuple[str, ...]:
        """The names of the configurations that may be promoted."""
        return tuple(
            item.name for item in self.configurations.values() if item.role is Role.CANDIDATE
        )


def read_configured(settings: Settings) -> Configured:
    """Check the settings and read the configurations of their folders.

    Raises:
        InvalidConfigurationError: A model is unknown, or a configuration file is not valid.
    """
    check_models(settings)
    return Configured(settings, _configurations(settings))


def check_models(settings: Settings) -> None:
    """Reject settings with unknown models; assets and tables are named after models.

    Raises:
        InvalidConfigurationError: Some variables are invalid; all are named with the valid values.
    """
    named = {
        "EMBEDDING_MODELS": settings.embedding_models,
        "NOTE_EMBEDDING_MODEL": (settings.note_embedding_model,),
        "LEGACY_EMBEDDING_MODEL": tuple(filter(None, [settings.legacy_embedding_model])),
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


def _configurations(settings: Settings) -> dict[str, NamedConfiguration]:
    made = {"chunks": settings.embedding_models, "notes": (settings.note_embedding_model,)}
    found = {
        name: item
        for name, item in load_configurations(settings.configuration_folders).items()
        # A model that is not switched on takes its configurations with it.
        if item.retrieval.model in made[item.retrieval.unit]
        or item.retrieval.model not in MODEL_NAMES
    }
    problems = [
        f"{item.name}: "
        + Message.CONFIGURATION_MODEL.format(
            model=item.retrieval.model, known=", ".join(settings.all_models)
        )
        for item in found.values()
        if item.retrieval.model not in MODEL_NAMES
    ]
    if problems:
        raise InvalidConfigurationError(Message.INVALID_CONFIGURATIONS, problems)
    return found
