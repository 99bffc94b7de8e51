"""Structured logs go to stderr: stdout belongs to what a command answers."""

import logging
import sys


def log_to_stderr(*, level: int = logging.INFO) -> None:
    """Configure the logs of this process; called by every entry point.

    Args:
        level: The least severe records to write, as `logging` numbers them. Those of DEBUG may hold
            what a user asked.
    """
    import structlog  # loads rich: not what a command line's --help should wait for

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Asked for at every record: who replaces stderr does not leave a closed file behind.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
