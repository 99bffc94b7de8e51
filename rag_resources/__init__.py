"""Everything the assets use: pure core, store, providers, retrieval, evaluation, resources.

Imports point down; `docs/architecture.md` draws the layers. Importing the package gives the codes
of `core.messages` their wording, since the core reads no files.
"""

from rag_resources.languages.messages import bind

bind()
