"""The errors of the product, all of them subclasses of `RagError`.

The class says what went wrong. `message` is what to tell the user (`languages.messages.render`
tells it in another language), and `msgid` and `values` are its English sentence and what is filled
in. `context` carries the offending values for the log.

    RagError
    ├── InvalidInputError        invalid input from the caller: exit code 2, HTTP 400
    │   ├── InvalidParameterError        a value out of range
    │   ├── InvalidConfigurationError    a configuration, with every problem named
    │   ├── InvalidFiltersError          conditions on notes, with every problem named
    │   ├── InvalidGoldenDatasetError    golden entries, with every bad one named
    │   ├── MixedSourcesError            notes of a source would join those of others
    │   ├── ModelInUseError              a model that cannot be retired, with its users named
    │   ├── InvalidSourceError           a folder or file of notes that cannot be read at all
    │   ├── InvalidQueryError            a question that cannot be searched
    │   └── ConflictError                the request contradicts stored data: HTTP 409
    ├── DatabaseError            the database is not usable
    │   ├── DatabaseUnavailableError     it does not answer
    │   ├── DatabaseTimeoutError         a statement exceeded its time limit
    │   ├── DatabaseLockedError          another session keeps a lock, and is named
    │   ├── DatabaseNotReadyError        it lacks the extension, the version or a privilege
    │   ├── SchemaMismatchError          its schema is missing, older or newer than the product's
    │   └── EmbeddedServerError          our own server cannot be started
    ├── ProviderError            an embedding or language model is not usable
    │   ├── ProviderUnavailableError     it does not answer, or answers with a server error
    │   ├── ModelMissingError            the server lacks the model
    │   ├── InvalidEmbeddingError        a vector with the wrong shape or values
    │   └── InvalidAnswerError           a language model's answer has the wrong shape
    ├── DeadlineExceededError    the deadline passed
    ├── DependencyOpenError      a circuit breaker refuses calls to a dependency that failed
    ├── RunLostError             a run lost its lock and must not write any more
    ├── ExtractionError          a document could not be read to its end
    ├── IndexingError            a note could not be chunked or embedded
    ├── GateNotPassedError       the gate forbids a promotion
    ├── DisturbedEvaluationError a question could not be asked in full, twice
    ├── MigrationHeldError       a person has put the migration on hold
    └── RollbackRefusedError     the rollback target cannot serve; nothing was changed
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rag_resources.languages.messages import Text, _, joined


class RagError(Exception):
    """Base of all errors of the product.

    Args:
        message: What to tell the user, from `languages.messages`.
        context: The offending values, for logs and tests; never credentials.
    """

    def __init__(self, message: str, **context: Any) -> None:
        super().__init__(message)
        self.message = message
        self.context = context

    @property
    def msgid(self) -> str | None:
        """The English sentence; None for words that are not ours, such as a server's."""
        return self.message.msgid if isinstance(self.message, Text) else None

    @property
    def values(self) -> Mapping[str, Any]:
        """The values filled into the message, by placeholder."""
        return self.message.values if isinstance(self.message, Text) else {}


class InvalidInputError(RagError):
    """The caller's input is invalid."""


class UnwritableTextError(InvalidInputError):
    """A text has a character that PostgreSQL cannot store."""


class InvalidParameterError(InvalidInputError):
    """A value is out of its range."""


class ProblemsError(InvalidInputError):
    """Several problems at once, each named.

    Args:
        headline: The sentence above the problems, which says what they have in common.
        problems: One line per problem, each naming the field, file or line.
        context: Further offending values.
    """

    def __init__(self, headline: str, problems: Sequence[str], **context: Any) -> None:
        super().__init__(joined("\n  - ", [headline, *problems]), **context)
        self.headline = headline
        self.problems = list(problems)

    @property
    def msgid(self) -> str | None:
        """The English sentence of the headline."""
        return self.headline.msgid if isinstance(self.headline, Text) else None

    @property
    def values(self) -> Mapping[str, Any]:
        """The values filled into the headline, and the `problems`."""
        filled = self.headline.values if isinstance(self.headline, Text) else {}
        return {**filled, "problems": tuple(self.problems)}


class InvalidConfigurationError(ProblemsError):
    """A retrieval configuration is invalid; every problem is named."""


class InvalidFiltersError(ProblemsError):
    """Conditions on notes are invalid; every problem is named."""


class InvalidGoldenDatasetError(ProblemsError):
    """A golden dataset is invalid; every bad entry is named."""


class MixedSourcesError(InvalidInputError):
    """Notes of a source would join those of other sources, and nobody consented."""


class ModelInUseError(ProblemsError):
    """A model cannot be retired; everything that uses it is named."""


class InvalidSourceError(InvalidInputError):
    """A source of notes cannot be read at all."""


class InvalidQueryError(InvalidInputError):
    """A question cannot be searched."""


class ConflictError(InvalidInputError):
    """The request contradicts stored data."""


class DatabaseError(RagError):
    """The database is not usable."""


class DatabaseUnavailableError(DatabaseError):
    """The database does not answer."""


class DatabaseTimeoutError(DatabaseError):
    """A statement exceeded its time limit; the server was told to cancel it."""


class DatabaseLockedError(DatabaseError):
    """Another session has kept a lock for too long; the message names it."""


class DatabaseNotReadyError(DatabaseError):
    """The database answers, but lacks the extension, the version or a privilege."""


class SchemaMismatchError(DatabaseError):
    """The schema of the database is missing, older or newer than this product's."""


class EmbeddedServerError(DatabaseError):
    """The embedded PostgreSQL cannot be started or stopped."""


class ProviderError(RagError):
    """An embedding or language model is not usable."""


class ProviderUnavailableError(ProviderError):
    """The provider does not answer, or answers with a server error; a retry may help."""


class ModelMissingError(ProviderError):
    """The provider lacks the model."""


class InvalidEmbeddingError(ProviderError):
    """A vector has the wrong shape or values."""


class InvalidAnswerError(ProviderError):
    """A language model's answer has the wrong shape."""


class DeadlineExceededError(RagError):
    """The deadline passed."""


class DependencyOpenError(RagError):
    """A circuit breaker refuses calls to a dependency that has failed too often."""


class RunLostError(RagError):
    """A run lost its lock in the database; other runs may have taken over its work."""


class ExtractionError(RagError):
    """A document could not be read to its end; the pages before are good."""


class IndexingError(RagError):
    """A note could not be chunked or embedded."""


class GateNotPassedError(RagError):
    """The gate forbids a promotion."""


class OvertakenPromotionError(GateNotPassedError):
    """What is searched changed between the evaluations that a promotion made and its decision."""


class DisturbedEvaluationError(RagError):
    """A question could not be asked in full, twice, so nothing can be concluded."""


class MigrationHeldError(RagError):
    """A person stopped or rolled back the migration, so no automatic work continues it."""


class RollbackRefusedError(RagError):
    """The rollback target cannot serve; nothing was changed."""


def unreadable(path: object, error: OSError | UnicodeDecodeError) -> Text:
    """Say why a file could not be read."""
    causes = {
        FileNotFoundError: _("There is no {path}. Check how it is spelt."),
        IsADirectoryError: _("{path} is a folder, and a file is needed."),
        UnicodeDecodeError: _("{path} is not UTF-8 text. Save it as UTF-8."),
    }
    message = causes.get(
        type(error), _("{path} cannot be read: check the path, the permissions and the disk.")
    )
    return message.format(path=path)
