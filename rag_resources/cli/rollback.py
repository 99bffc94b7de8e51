"""`rag rollback`: lets the previous configuration serve again, as the job `rollback_promotion`."""

from typing import Annotated

import typer

from rag_resources.cli.output import JsonOption, clean, conclude, warn
from rag_resources.cli.session import application
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message


def rollback(
    config: Annotated[
        str | None, typer.Argument(metavar="CONFIGURACIÓN", help=Message.HELP_ROLLBACK_CONFIG)
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", metavar="MOTIVO", help=Message.HELP_ROLLBACK_REASON)
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Withdraw a configuration, by default the one that serves."""
    from rag_resources.core.configuration import usable_retrieval
    from rag_resources.serving.serving import unlike_its_file

    given = clean(reason).strip()
    if not given:
        raise InvalidParameterError(Message.ROLLBACK_REASON_OPTION)
    with application() as app:
        before = app.serving.promotion()
        name = config or (before.configuration if before else "")
        # Without a name, it is what serves at this moment, even if that is an earlier version.
        config_hash = before.config_hash if before and not config else None
        outcome = app.serving.withdraw(name, reason=given, run_id=None, config_hash=config_hash)
        settings = app.settings
        unlike = unlike_its_file(outcome.serving, app.configurations)
    serving = outcome.serving
    if unlike:
        warn(unlike)
    serves = usable_retrieval(serving.config, origin=serving.configuration)
    if notice := settings.warning_about(serving.configuration, serves):
        warn(notice)
    conclude(
        outcome.in_words,
        {
            "configuration": serving.configuration,
            "configHash": serving.config_hash,
            "model": serving.model,
            "changed": outcome.changed,
            "withdrawn": name if outcome.changed else None,
        },
        as_json=as_json,
    )
