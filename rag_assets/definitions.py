"""The code location that Dagster loads. Only this module reads the environment at import."""

from rag_assets.code_location import build_defs
from rag_resources.settings import load_settings

defs = build_defs(load_settings())
