"""The errors of the product, all of them subclasses of `RagError`.

The class says what went wrong. `code` and `values` are those of the message, and `message` is its
sentence in Spanish (`languages.messages.render` makes it in another language). `context` carries
the offending values for the log.

    RagError
    ├── InvalidInputError        the caller gave something wrong: exit code 2, HTTP 400
    │   ├── InvalidParameterError        a value out of range
    │   ├── InvalidConfigurationError    a configuration, with every problem named
    │   ├── InvalidFiltersError          conditions on notes, with every problem named
    │   ├── InvalidGoldenDatasetError    golden entries, with every bad one named
    │   ├── SettingsChangedError         settings unlike those that filled the database
    │   ├── ModelInUseError              a model to retire, with all that points at it named
    │   ├── InvalidSourceError           a folder or file of notes that cannot be read at all
    │   └── InvalidQueryError            a question that cannot be searched
    ├── DatabaseError            the database is not usable
    │   ├── DatabaseUnavailableError     it does not answer
    │   ├── DatabaseTimeoutError         a statement took longer than it may
    │   ├── DatabaseNotReadyError        it lacks what we need: extension, version, rights
    │   ├── SchemaMismatchError          its schema is missing, older or newer than the product's
    │   └── EmbeddedServerError          our own server cannot be started
    ├── ProviderError            an embedding or language model is not usable
    │   ├── ProviderUnavailableError     it does not answer, or answers with a server error
    │   ├── ModelMissingError            the server lacks the model
    │   ├── InvalidEmbeddingError        a vector with the wrong shape or values
    │   └── InvalidAnswerError           a language model's answer that is not what was asked for
    ├── DeadlineExceededError    there was no time left for it
    ├── DependencyOpenError      a circuit breaker keeps calls from a dependency that failed
    ├── RunLostError             a run that lost its lock: it must write nothing more
    ├── IndexingError            a note that could not be chunked or embedded
    ├── GateNotPassedError       a promotion that the gate forbids
    ├── MigrationHeldError       work that somebody keeps from being done by itself
    └── RollbackRefusedError     a way back that leads nowhere; nothing was changed
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rag_resources.core.texts import Text, joined


class RagError(Exception):
    """Base of all errors of the product.

    Args:
        message: What to tell a user, of `core.messages`.
        context: The offending values, for logs and tests; never credentials.
    """

    def __init__(self, message: str, **context: Any) -> None:
        super().__init__(message)
        self.message = message
        self.context = context

    @property
    def code(self) -> str | None:
        """Of the message; None if it is not of the catalogue, such as a server's own words."""
        return self.message.code if isinstance(self.message, Text) else None

    @property
    def values(self) -> Mapping[str, Any]:
        """What is filled into the message, by placeholder."""
        return self.message.values if isinstance(self.message, Text) else {}


class InvalidInputError(RagError):
    """The caller gave something wrong."""


class InvalidParameterError(InvalidInputError):
    """A value is out of its range."""


class ProblemsError(InvalidInputError):
    """Several problems at once, each named.

    Args:
        headline: What they have in common.
        problems: One line per problem, each naming the field, file or line.
        context: Further offending values.
    """

    def __init__(self, headline: str, problems: Sequence[str], **context: Any) -> None:
        super().__init__(joined("\n  - ", [headline, *problems]), **context)
        self.headline = headline
        self.problems = list(problems)

    @property
    def code(self) -> str | None:
        """Of the headline."""
        return self.headline.code if isinstance(self.headline, Text) else None

    @property
    def values(self) -> Mapping[str, Any]:
        """What is filled into the headline, and the `problems`."""
        filled = self.headline.values if isinstance(self.headline, Text) else {}
        return {**filled, "problems": tuple(self.problems)}


class InvalidConfigurationError(ProblemsError):
    """A retrieval configuration is invalid; every problem is named."""


class InvalidFiltersError(ProblemsError):
    """Conditions on notes are invalid; every problem is named."""


class InvalidGoldenDatasetError(ProblemsError):
    """A golden dataset is invalid; every bad entry is named."""


class SettingsChangedError(ProblemsError):
    """The settings are not those that the database was filled with."""


class ModelInUseError(ProblemsError):
    """A model cannot be retired; everything that points at it is named."""


class InvalidSourceError(InvalidInputError):
    """A source of notes cannot be read at all."""


class InvalidQueryError(InvalidInputError):
    """A question cannot be searched."""


class DatabaseError(RagError):
    """The database is not usable."""


class DatabaseUnavailableError(DatabaseError):
    """The database does not answer."""


class DatabaseTimeoutError(DatabaseError):
    """A statement took longer than it may; the server was told to stop it."""


class DatabaseNotReadyError(DatabaseError):
    """The database answers but lacks what we need: extension, version or rights."""


class SchemaMismatchError(DatabaseError):
    """The schema of the database is missing, older or newer than this product's."""


class EmbeddedServerError(DatabaseError):
    """The embedded PostgreSQL cannot be started or stopped."""


class ProviderError(RagError):
    """An embedding or language model is not usable."""


class ProviderUnavailableError(ProviderError):
    """The provider does not answer, or answers with a server error: worth a retry."""


class ModelMissingError(ProviderError):
    """The provider lacks the model."""


class InvalidEmbeddingError(ProviderError):
    """A vector has the wrong shape or values."""


class InvalidAnswerError(ProviderError):
    """A language model answered something else than what was asked for."""


class DeadlineExceededError(RagError):
    """There was no time left."""


class DependencyOpenError(RagError):
    """A circuit breaker keeps calls away from a dependency that has failed too often."""


class RunLostError(RagError):
    """A run lost its lock in the database: others may have taken over its work."""


class IndexingError(RagError):
    """A note could not be chunked or embedded."""


class GateNotPassedError(RagError):
    """The gate forbids a promotion."""


class MigrationHeldError(RagError):
    """Somebody stopped the migration or took it back: nothing goes on by itself."""


class RollbackRefusedError(RagError):
    """What is to be gone back to could not serve; nothing was changed."""
