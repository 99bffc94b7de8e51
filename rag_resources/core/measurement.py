"""The versions of everything that an evaluation's numbers depend on.

They are read by `store.versions`; those of a stored evaluation are `StoredEvaluation.versions`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rag_resources.core.configuration import RetrievalConfig


@dataclass(frozen=True, slots=True)
class Versions:
    """What was measured, or would be measured now: equal versions give equal results.

    Attributes:
        model_digest: Of the model's weights; empty if the model is not known, or was retired.
        chunking_hashes: The ways in which the chunked notes are chunked.
        index_version: Changes with everything that is searched.
    """

    config_hash: str
    golden_hash: str
    model: str
    model_digest: str
    chunking_hashes: tuple[str, ...]
    index_version: int

    def is_same_measurement(self, other: "Versions") -> bool:
        """Whether the same configuration was asked the same questions over the same index."""
        return (self.config_hash, self.golden_hash, self.index_version) == (
            other.config_hash,
            other.golden_hash,
            other.index_version,
        )


@dataclass(frozen=True, slots=True)
class Present:
    """What a database holds now that results depend on, whatever the configuration.

    Attributes:
        model_digests: By model; of those known and not retired.
    """

    golden_hash: str
    model_digests: Mapping[str, str]
    chunking_hashes: tuple[str, ...]
    index_version: int

    def versions(self, config: RetrievalConfig) -> Versions:
        """Return what an evaluation of a configuration would be of."""
        return Versions(
            config_hash=config.config_hash,
            golden_hash=self.golden_hash,
            model=config.model,
            model_digest=self.model_digests.get(config.model, ""),
            chunking_hashes=self.chunking_hashes,
            index_version=self.index_version,
        )
