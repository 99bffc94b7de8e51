"""The serving configuration: the one that answers when a caller names none."""

import json
from dataclasses import dataclass
from functools import lru_cache

from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    parse_retrieval,
)
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.database.pool import Connection
from rag_resources.languages.messages import _
from rag_resources.store.promotions import Promotion, current_promotion


@dataclass(frozen=True, slots=True)
class Serving:
    """The configuration that answers questions.

    Attributes:
        name: The configuration's name.
        promotion: None before the first promotion.
        problems: Why the stored promoted configuration is invalid; `config` then has the default
            values.
    """

    name: str
    config: RetrievalConfig
    promotion: Promotion | None = None
    problems: tuple[str, ...] = ()


def read_serving(connection: Connection, default: NamedConfiguration) -> Serving:
    """Return the promoted configuration, or the default one if none is promoted."""
    promotion = current_promotion(connection)
    if promotion is None:
        return Serving(default.name, default.retrieval)
    name = promotion.configuration
    try:
        config = _parsed(json.dumps(promotion.config, sort_keys=True), name)
    except InvalidConfigurationError as error:
        return Serving(name, RetrievalConfig(), promotion, tuple(error.problems))
    return Serving(name, config, promotion)


@lru_cache(maxsize=64)
def _parsed(stored: str, name: str) -> RetrievalConfig:
    """Return a stored configuration, the same object for every question that it serves."""
    origin = _("{name} (promoted)").format(name=name)
    return parse_retrieval(json.loads(stored), origin=origin)
