"""What the launchpad asks a person for."""

from typing import Any

import dagster as dg


class LaunchpadConfig(dg.Config):
    """The base of all configurations that a person writes.

    Dagster shows a configuration's docstring above its fields. Ours are for programmers, and the
    fields are described in the user's language, so the classes drop theirs.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Drop the docstring."""
        super().__init_subclass__(**kwargs)
        cls.__doc__ = None
