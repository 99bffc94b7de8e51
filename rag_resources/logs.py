"""Structured logs go to stderr: stdout belongs to what a command answers."""

import sys


def log_to_stderr() -> None:
    """Configure the logs of this process; called by every entry point."""
    import structlog  # loads rich: not what a command line's --help should wait for

    # Asked for at every record: who replaces stderr does not leave a closed file behind.
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
