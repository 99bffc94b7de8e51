"""Settings with checked model names, and the named configurations that they select."""

from dataclasses import dataclass

from rag_resources.configurations import Configurations, load_configurations
from rag_resources.core.configuration import Role
from rag_resources.settings import Settings


@dataclass(frozen=True)
class Configured:
    """Checked settings and the named configurations that they select.

    Attributes:
        settings: Every model in them exists.
        configurations: By name; only those whose model is switched on, or that need no vectors.
    """

    settings: Settings
    configurations: Configurations

    @property
    def models(self) -> tuple[str, ...]:
        """The models whose chunk vectors are assets."""
        return self.settings.embedding_models

    @property
    def candidates(self) -> tuple[str, ...]:
        """The names of the configurations that may be promoted."""
        return tuple(
            item.name for item in self.configurations.values() if item.role is Role.CANDIDATE
        )


def read_configured(settings: Settings) -> Configured:
    """Read the configurations of the folders that the settings name."""
    found = load_configurations(settings.configuration_folders)
    return Configured(settings, found.switched_on(settings.makes_vectors_for))
