"""Everything the assets use: pure core, store, providers, retrieval, evaluation, resources.

Imports point down: resources → evaluation → retrieval | indexing | ingestion → providers | store →
database → settings → core.
"""
