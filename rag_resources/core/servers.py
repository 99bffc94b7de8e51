"""Addresses of the model servers, as the settings name them and providers use them."""

from dataclasses import dataclass

from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the models of servers are.

    Attributes:
        ollama_host: Address of the Ollama server; None is this machine's.
        openai_base_url: Address of the OpenAI-compatible server, up to the version; None: there is
            none. It has no default, so that notes are not sent anywhere by mistake.
        openai_api_key: Its key, if it requires one.
    """

    ollama_host: str | None = None
    openai_base_url: str | None = None
    openai_api_key: SecretStr | None = None
