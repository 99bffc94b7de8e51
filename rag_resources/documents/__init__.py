"""Documents: where files come from, reading them into pages with places, and storing them.

Types are in `core.documents`; cleaning, hyphenation and quality are pure and therefore in `core`.
"""
