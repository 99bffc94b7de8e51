"""The code location that Dagster loads. Only this module reads the environment at import."""

from rag_assets.code_location import build_defs
from rag_resources.logs import log_to_stderr
from rag_resources.settings import load_settings

_settings = load_settings()
log_to_stderr(level=_settings.log_level)
defs = build_defs(_settings)
