"""The serving configuration: the one that answers when a caller names none."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from rag_resources.core.attribution import config_changes
from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    parse_retrieval,
    usable_retrieval,
)
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.database.pool import Connection
from rag_resources.languages.messages import Text, _
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


def unlike_its_file(
    promotion: Promotion, configurations: Mapping[str, NamedConfiguration]
) -> Text | None:
    """Say how what serves differs from the configuration in the file of its name; None if not.

    Args:
        promotion: Of what serves.
        configurations: Those of the files, by name.
    """
    name = promotion.configuration
    own = configurations.get(name)
    if own is None:
        return _(
            "“{name}”, which serves, is in no file. “rag run” chooses among those of the files, "
            "so it may replace it."
        ).format(name=name)
    if own.retrieval.config_hash == promotion.config_hash:
        return None
    config = usable_retrieval(promotion.config, origin=name)
    before = config.model_dump(mode="json") if config else dict(promotion.config)
    changes = config_changes(before, own.retrieval.model_dump(mode="json"))
    told = ", ".join(f"{each.field} {each.before} → {each.after}" for each in changes)
    return _(
        "“{name}” serves in another version than that of its file ({changes}); its last figures "
        "may be of either. “rag run” chooses among those of the files, so it may replace it; to "
        "keep it, undo the change in its file."
    ).format(name=name, changes=told)


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
