"""Rows of `embedding_models`, and the partitions created and dropped with them.

Whether a model may be retired is decided in `indexing.retirement`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from rag_resources.core.errors import InvalidParameterError, ModelMissingError, ProviderError
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import ModelInfo
from rag_resources.core.windows import WindowsConfig, windows_hash
from rag_resources.database.claims import with_brief_locks
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import _


@dataclass(frozen=True, slots=True)
class ModelContents:
    """What is stored for a model.

    Attributes:
        state: As in `embedding_models`; None if nothing was ever indexed with it.
        vectors: How many of each kind.
        pending: Chunked notes that lack some vectors.
        failures: Texts that it could not embed.
        size: Size of its vectors and their indexes, in bytes.
    """

    name: str
    state: str | None = None
    vectors: Mapping[str, int] = field(default_factory=dict)
    pending: int = 0
    failures: int = 0
    size: int = 0

    def count(self, kind: VectorKind) -> int:
        """Return how many vectors it has of a kind."""
        return self.vectors.get(kind, 0)

    @property
    def retired(self) -> bool:
        """Whether the model was retired, so that nothing of it is stored any more."""
        return self.state == "retired"


def register_model(
    connection: Connection,
    info: ModelInfo,
    kinds: Collection[VectorKind],
    *,
    windows: WindowsConfig | None = None,
) -> None:
    """Register a model: its row, its partitions, its queue of notes.

    A retired model is registered again as if it were new. If the model is registered already with
    these kinds of vectors, nothing is written or locked. Otherwise some tables are locked against
    writers until commit.

    Args:
        connection: In a transaction.
        info: The model.
        kinds: The vectors it is to make, besides those that it makes already.
        windows: How chunks are cut; None: by default.

    Raises:
        ProviderError: A model of that name has other weights, prefixes or dimension.
        IndexingError: Others did not release those tables in time.
    """
    made = sorted(map(str, kinds))
    cut = windows_hash(windows or WindowsConfig()) if VectorKind.WINDOW in kinds else None
    if not _is_registered(connection, info, made, cut):
        with_brief_locks(connection, lambda: _register(connection, info, made, cut))


def _is_registered(
    connection: Connection, info: ModelInfo, kinds: Sequence[str], cut: str | None
) -> bool:
    stored = queries().fetch_model(connection, name=info.name)
    if stored is None or stored.retired:
        return False
    if (stored.dimension, stored.digest) != (info.dimension, info.digest):
        raise ProviderError(
            _(
                "The model “{model}” has other weights, prefixes or another dimension than when "
                "it was registered. Give it another name to index with it while the former one "
                "goes on serving."
            ).format(model=info.name),
            model=info.name,
        )
    is_same: bool = (
        stored.similarity_threshold,
        (stored.cosine_low, stored.cosine_high),
    ) == (info.similarity_threshold, info.cosine_range)
    return is_same and set(kinds) <= set(stored.kinds) and cut in (None, stored.windows_hash)


def _register(
    connection: Connection, info: ModelInfo, kinds: Sequence[str], cut: str | None
) -> None:
    queries().lock_for_partitions(connection)
    # Another run may have registered it meanwhile.
    if _is_registered(connection, info, kinds, cut):
        return
    stored = queries().fetch_model(connection, name=info.name)
    queries().register_model(
        connection,
        name=info.name,
        dimension=info.dimension,
        provider=info.provider,
        digest=info.digest,
        similarity_threshold=info.similarity_threshold,
        cosine_low=info.cosine_range[0],
        cosine_high=info.cosine_range[1],
        kinds=sorted({*kinds, *(stored.kinds if stored else ())}),
        windows_hash=cut,
    )
    queries().create_partitions(connection, name=info.name, dimension=info.dimension)
    if set(kinds) != {VectorKind.NOTE}:
        queries().request_missing_vectors(connection, model=info.name)


def kinds_of(connection: Connection, name: str) -> set[VectorKind]:
    """Return the kinds of vectors that a model makes; none if it is unknown or retired."""
    row = queries().fetch_model(connection, name=name)
    return set(map(VectorKind, row.kinds)) if row else set()


def fetch_model(connection: Connection, name: str) -> ModelInfo | None:
    """Return a registered model; None if it is unknown or retired."""
    row = queries().fetch_model(connection, name=name)
    if row is None or row.retired:
        return None
    return ModelInfo(
        name=row.name,
        dimension=row.dimension,
        provider=row.provider,
        digest=row.digest,
        similarity_threshold=row.similarity_threshold,
        max_sequence_tokens=0,
        cosine_range=(row.cosine_low, row.cosine_high),
    )


def require_model(connection: Connection, name: str) -> ModelInfo:
    """Return a registered model, to search with it.

    Raises:
        ModelMissingError: Nothing was ever indexed with it, or it was retired.
    """
    info = fetch_model(connection, name)
    if info is None:
        raise ModelMissingError(
            _(
                "Nothing is indexed with the model “{model}”, or it was retired. Materialize the "
                "asset embeddings/{model} (if it does not exist, first add the model to "
                "EMBEDDING_MODELS and restart) or choose another configuration."
            ).format(model=name),
            model=name,
        )
    return info


def keep_model(connection: Connection, name: str) -> None:
    """Keep a model from being retired until commit, because the caller will embed with it.

    Raises:
        ModelMissingError: It was retired.
    """
    queries().keep_model(connection, name=name)
    require_model(connection, name)


def model_contents(connection: Connection, name: str) -> ModelContents:
    """Count what is stored for a model.

    Raises:
        InvalidParameterError: No model of that name was ever registered; the message lists those
            that were.
    """
    for row in queries().model_contents(connection, name=name):
        return ModelContents(*row)
    known = ", ".join(model.name for model in queries().list_models(connection))
    message = _("Unknown embedding model: “{name}”. Available models: {known}").format(
        name=name, known=known
    )
    raise InvalidParameterError(message, name=name)


def every_model(connection: Connection) -> list[ModelContents]:
    """Count what is stored for each model ever registered, by name."""
    return [ModelContents(*row) for row in queries().model_contents(connection, name=None)]


def claim_model(connection: Connection, name: str) -> bool:
    """Claim a model until commit, so that nobody else embeds, indexes or queues anything for it.

    Returns:
        False if somebody is already making vectors or indexes of it.
    """
    queries().lock_chunking(connection)
    claimed: bool = queries().claim_model(connection, name=name)
    return claimed


def retire_model(connection: Connection, name: str) -> None:
    """Drop everything of a claimed model except its row; commit immediately afterwards.

    Until the commit, anyone who uses `vectors` as a whole waits; searches of another model's
    partition do not.
    """
    queries().mark_retired(connection, name=name)
    queries().drop_partitions(connection, name=name)
