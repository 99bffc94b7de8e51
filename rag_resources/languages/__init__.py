"""Language as data: `es/`, `fr/` and `en/` contain everything that depends on it, as TOML files.

`es` has everything: the notes are Spanish. `fr` and `en` have what a question and its answer need:
the messages for readers of answers, the rules and words of questions, and the prompts about both.
`en` also has all messages for operators. Code reads the data through the modules of this package.
The codes of messages are in `core.messages`.
"""
