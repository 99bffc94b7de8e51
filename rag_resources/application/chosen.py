"""The configuration that a question is answered with, and how a server goes on to the next one."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rag_resources.core.configuration import RetrievalConfig


@dataclass(frozen=True, slots=True)
class Chosen:
    """A configuration, the name shown to people, messages for them, and the name alone.

    `is_promoted` as in `application.wiring.Answered`.
    """

    label: str
    config: RetrievalConfig
    messages: tuple[str, ...] = ()
    name: str = ""
    is_promoted: bool = False


class Switch:
    """Goes on with what served until the models of what serves now are loaded.

    For a process in which a thread loads them, as in `rag serve`; without it, the switch would
    never come.
    """

    def __init__(self) -> None:
        self._last: Chosen | None = None

    def follow(self, serving: Chosen, is_warm: Callable[[RetrievalConfig], bool]) -> Chosen:
        """Return what to answer with: at first, and as soon as it is loaded, what serves.

        Args:
            serving: What serves now.
            is_warm: Whether the models of a configuration are loaded.
        """
        last = self._last
        if last is None or last.config == serving.config or is_warm(serving.config):
            self._last = serving
            return serving
        return replace(last, label=last.name, is_promoted=False)
