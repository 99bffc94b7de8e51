"""Structured logs on stderr; stdout is for the results of commands."""

import logging
import sys


def log_to_stderr(*, level: int | str = logging.INFO) -> None:
    """Configure the logs of this process; called by every entry point.

    Args:
        level: The least severe level to write, as `logging` numbers it, or its name. DEBUG records
            may contain users' questions.
    """
    import structlog  # loads rich, which `--help` should not wait for

    if (
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter
        in structlog.get_config()["processors"]
    ):
        # Dagster's server for code writes through `logging`, which its processors require.
        structlog.reset_defaults()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Looks up stderr at every record, so that a replaced stderr leaves no closed file behind.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
