"""Language as data: `es/`, `fr/` and `en/` hold what depends on it, as TOML files.

`es` has every message; `fr` and `en` have those that readers of answers see. Code asks for what it
needs through the modules here. The codes of messages are in `core.messages`.
"""
