"""The serving configuration: the one that answers when a caller names none."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    parse_retrieval,
)
from rag_resources.core.errors import InvalidConfigurationError, InvalidSourceError
from rag_resources.database.pool import Connection
from rag_resources.files import PRIVATE, set_aside, write_atomically
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


def write_configuration(folder: Path, named: NamedConfiguration, *, replace: bool = False) -> Path:
    """Write a configuration as a file of a folder, and return it.

    Args:
        folder: Made if it is missing.
        named: Its name is the file's.
        replace: Whether a file that is there is replaced; it is kept beside. Otherwise it stays.

    Raises:
        InvalidSourceError: The file cannot be written.
    """
    path = folder / f"{named.name}.yaml"
    fields = named.model_dump(mode="json", exclude_defaults=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            if not replace:
                return path
            set_aside(path)
        text = yaml.safe_dump(fields, allow_unicode=True, sort_keys=False)
        write_atomically(path, text, mode=PRIVATE)
    except OSError as error:
        raise InvalidSourceError(
            _(
                "{path} cannot be written: check the folder, the permissions and the free space."
            ).format(path=path)
        ) from error
    return path
