"""What serves: the configuration that answers when nobody names one."""

from dataclasses import dataclass

from rag_resources.core.configuration import NamedConfiguration, RetrievalConfig, parse_retrieval
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.messages import Message
from rag_resources.database.pool import Connection
from rag_resources.store.promotions import Promotion, current_promotion


@dataclass(frozen=True, slots=True)
class Serving:
    """The configuration that answers.

    Attributes:
        name: Of the configuration.
        promotion: None before the first promotion.
        problems: Why the promoted configuration, as stored, is not valid; `config` has the default
            values then.
    """

    name: str
    config: RetrievalConfig
    promotion: Promotion | None = None
    problems: tuple[str, ...] = ()


def read_serving(connection: Connection, default: NamedConfiguration) -> Serving:
    """Return what serves: the promoted configuration, else the default one."""
    promotion = current_promotion(connection)
    if promotion is None:
        return Serving(default.name, default.retrieval)
    name = promotion.configuration
    try:
        config = parse_retrieval(
            promotion.config, origin=Message.RETRIEVED_CONFIG_PROMOTED.format(name=name)
        )
    except InvalidConfigurationError as error:
        return Serving(name, RetrievalConfig(), promotion, tuple(error.problems))
    return Serving(name, config, promotion)
