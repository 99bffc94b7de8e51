"""Connects settings, database, models and pipeline, and offers the use cases of each domain.

`wiring` builds an `Application`, which answers questions itself. Everything else is in its domains,
each a module here: `golden`, `evaluations`, `serving`, `migration`, `indexing`, `notes`. Assets and
commands call the domains and access neither database nor settings.
"""

from rag_resources.application.chosen import Switch
from rag_resources.application.wiring import Answered, Application, open_application

__all__ = ["Answered", "Application", "Switch", "open_application"]
