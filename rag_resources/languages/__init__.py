"""Language as data: `es/`, `fr/` and `en/` contain everything that depends on it, as TOML files.

`es` is complete, because the notes are Spanish. `fr` and `en` have the data for questions and their
answers: messages for readers, rules and words of questions, and the prompts about both.
`en` also has all messages for operators. Code reads the data through the modules of this package.
The codes of messages are in `core.messages`.
"""
