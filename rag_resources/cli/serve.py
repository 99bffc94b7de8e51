"""`rag serve`: the HTTP API until it is stopped."""

from rag_resources.cli.output import say, warn, working
from rag_resources.cli.session import application, read_settings
from rag_resources.core.messages import Message


def serve() -> None:
    """Serve the HTTP API."""
    from rag_resources.api.running import COMMAND, DEFAULT_PORT, check_exposure, free_port
    from rag_resources.api.running import serve as serve_until_stopped
    from rag_resources.programs import announced

    settings = read_settings()
    port = free_port(settings)
    with working(Message.CLI_OPENING), application() as opened:
        is_open = check_exposure(settings, opened)
    if settings.api_port is None and port != DEFAULT_PORT:
        warn(Message.API_PORT_OTHER.format(default=DEFAULT_PORT, port=port))
    if is_open:
        warn(Message.API_OPEN)
    say(Message.API_SERVING.format(host=settings.api_host, port=port))
    address = f"http://{settings.api_host}:{port}"
    with announced(settings.rag_home, COMMAND, address=address):
        serve_until_stopped(settings, port)
