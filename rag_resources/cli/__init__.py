"""The `rag` command: thin commands, a module per group; what they do belongs to the layers below.

Heavy modules (models, numpy, rich tables) are imported inside the commands that use them,
so that `rag --help` answers at once.
"""

from rag_resources.cli.main import main

__all__ = ["main"]
