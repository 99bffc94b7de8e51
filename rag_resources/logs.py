"""Structured logs go to stderr: stdout belongs to what a command answers."""

import sys

import structlog


def log_to_stderr() -> None:
    """Configure the logs of this process; called by every entry point."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
