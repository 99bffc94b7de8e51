"""Language as data: `es/`, `fr/` and `en/` contain everything that depends on it, as TOML files.

`es` has every message. `fr` and `en` have the messages for readers of answers. Code reads the data
through the modules of this package. The codes of messages are in `core.messages`.
"""
