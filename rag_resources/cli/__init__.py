"""The `rag` command: a module per group of thin commands; the work is done in the layers below.

Heavy modules (models, numpy, rich tables) are imported inside the commands that use them,
so that `rag --help` answers at once.
"""

from rag_resources.cli.main import main

__all__ = ["main"]
