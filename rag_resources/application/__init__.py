"""Settings, database, models and pipeline wired together, and what one can do with them.

`wiring` makes an `Application`. It answers questions itself; everything else is done by one of its
domains, each a module here: `golden`, `evaluations`, `serving`, `migration`, `indexing`, `notes`.
Assets and commands ask those, and touch neither database nor settings.
"""

from rag_resources.application.wiring import Answered, Application, open_application

__all__ = ["Answered", "Application", "open_application"]
