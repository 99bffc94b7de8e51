"""Everything the assets use: pure core, store, providers, retrieval, evaluation, resources.

Imports point down; `docs/architecture.md` draws the layers. Importing the package gives the core
the data of the language, since the core reads no files.
"""

from rag_resources.languages import messages, rules

messages.bind()
rules.bind()
