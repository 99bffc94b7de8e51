"""Everything that the assets use, from the pure core to the HTTP API and the Dagster resource.

Imports point down; `docs/architecture.md` draws the layers. Importing the package loads the
language's data into the core, because the core reads no files.
"""

from rag_resources.languages import messages, rules

messages.bind()
rules.bind()
