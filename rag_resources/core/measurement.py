"""The versions of everything that the figures of an evaluation depend on, to say what changed.

`store.evaluations` reads the current ones; those of a stored evaluation are
`StoredEvaluation.versions`. Whether an evaluation is still current is decided in `core.evidence`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rag_resources.core.configuration import RetrievalConfig


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of what was measured, or would be now.

    Attributes:
        model_digest: Digest of the model's weights; empty if it is unknown or retired.
        chunking_hashes: Hashes of all chunking settings in use.
        index_version: Changes with every change to searched data.
    """

    config_hash: str
    golden_hash: str
    model: str
    model_digest: str
    chunking_hashes: tuple[str, ...]
    index_version: int


@dataclass(frozen=True, slots=True)
class Present:
    """The current versions in a database, independent of a configuration.

    Attributes:
        model_digests: Digests by model, of the registered models that are not retired.
    """

    golden_hash: str
    model_digests: Mapping[str, str]
    chunking_hashes: tuple[str, ...]
    index_version: int

    def versions(self, config: RetrievalConfig) -> Versions:
        """Return the versions that an evaluation of a configuration would have now."""
        return Versions(
            config_hash=config.config_hash,
            golden_hash=self.golden_hash,
            model=config.model,
            model_digest=self.model_digests.get(config.model, ""),
            chunking_hashes=self.chunking_hashes,
            index_version=self.index_version,
        )
