"""Names of the models of servers, as used in settings, configurations, assets and tables."""

import re


def short_name(provider: str, model: str) -> str:
    """Turn a model's name on its server into one that is safe as an asset key.

    Args:
        provider: `ollama` or `openai`.
        model: Such as "bge-m3:567m".

    Returns:
        Such as "ollama_bge_m3_567m": letters, digits and `_` only; the tag "latest" is left out.
    """
    name = re.sub(r"\W+", "_", model.removesuffix(":latest"), flags=re.ASCII).strip("_")
    return f"{provider}_{name}"
