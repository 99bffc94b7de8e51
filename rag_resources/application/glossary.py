"""Use cases of the glossary: the abbreviations in a tenant's questions, with their expansions."""

from dataclasses import dataclass

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message
from rag_resources.core.text import is_blank, storable
from rag_resources.database.pool import Database
from rag_resources.store.questions import (
    Abbreviation,
    delete_abbreviation,
    list_glossary,
    write_abbreviation,
)

MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class Glossary:
    """The glossary of one tenant."""

    database: Database

    def entries(self) -> list[Abbreviation]:
        """Return all abbreviations, in order."""
        with self.database.transaction() as connection:
            return list_glossary(connection)

    def add(self, abbreviation: str, expansion: str) -> Abbreviation:
        """Store the expansion of an abbreviation, in place of an earlier one.

        Raises:
            InvalidParameterError: One of them is blank or too long, or the first is several words.
        """
        entry = Abbreviation(abbreviation.strip(), expansion.strip())
        for name, value in (("abbreviation", entry.abbreviation), ("expansion", entry.expansion)):
            is_wrong = is_blank(value) or len(value) > MAX_CHARS or storable(value) != value
            if is_wrong or (name == "abbreviation" and len(value.split()) > 1):
                message = Message.GLOSSARY_INVALID.format(field=name, maximum=MAX_CHARS)
                raise InvalidParameterError(message, field=name)
        with self.database.transaction() as connection:
            write_abbreviation(connection, entry)
        return entry

    def remove(self, abbreviation: str) -> None:
        """Remove an abbreviation.

        Raises:
            InvalidParameterError: It is not there.
        """
        with self.database.transaction() as connection:
            if not delete_abbreviation(connection, storable(abbreviation)):
                message = Message.GLOSSARY_UNKNOWN.format(abbreviation=storable(abbreviation))
                raise InvalidParameterError(message, field="abbreviation")
