"""Language as data: `es/`, `fr/` and `en/` contain everything that depends on it.

Messages are English in the code; `es/messages.po` translates all of them, because the notes are
Spanish, and `fr/messages.po` those that readers of answers meet. Rules and words of questions and
the prompts about them exist in every language. Code reads the data through the modules of this
package.
"""
