"""Retires embedding models: drops a model's data once nothing uses it.

What is dropped, and under which locks, is in `store.models`.
"""

from rag_resources.configurations import DEFAULT_CONFIGURATION, load_configurations
from rag_resources.core.errors import ModelInUseError
from rag_resources.database.claims import with_brief_locks
from rag_resources.database.pool import Connection, Database
from rag_resources.languages.messages import _
from rag_resources.settings import Settings
from rag_resources.store.models import ModelContents, claim_model, model_contents, retire_model
from rag_resources.store.promotions import current_promotion, lock_promotions, serves_other_tenants


def retire(database: Database, settings: Settings, model: str) -> ModelContents:
    """Drop the vectors, indexes, queue and failures of a model, in one transaction.

    A named configuration does not prevent it: without its model it is not evaluated either.

    Args:
        database: Open.
        settings: The settings that runs use.
        model: The model's name.

    Returns:
        What was dropped; empty if the model was already retired.

    Raises:
        InvalidParameterError: No model ever had this name.
        ModelInUseError: The model is in use; every use is named and nothing was changed.
        IndexingError: The tables stay locked by others; nothing was changed.
    """
    with database.transaction() as connection:
        contents = model_contents(connection, model)
        if not contents.retired:
            with_brief_locks(connection, lambda: _retire(connection, settings, model))
        return contents


def _retire(connection: Connection, settings: Settings, model: str) -> None:
    # The lock that promotions take, so that what serves cannot change before commit.
    lock_promotions(connection)
    serving = _serving(connection, settings, model)
    in_use = [serving] if serving else []
    if serves_other_tenants(connection, model):
        in_use.append(_("the configuration that serves another owner of notes (TENANT) uses it"))
    if model in settings.embedding_models:
        in_use.append(
            _(
                "it is in EMBEDDING_MODELS, so the next backfill would make it again: remove "
                "“{model}” from EMBEDDING_MODELS and restart"
            ).format(model=model)
        )
    if model == settings.note_embedding_model:
        in_use.append(
            _(
                "it is that of the whole notes: set another one in NOTE_EMBEDDING_MODEL, restart "
                "and materialise note_embeddings"
            )
        )
    if not claim_model(connection, model):
        in_use.append(_("a run is making its vectors or indexes: wait until it ends, or cancel it"))
    if in_use:
        raise ModelInUseError(
            _("The model “{model}” cannot be retired, and nothing was changed:").format(
                model=model
            ),
            in_use,
            model=model,
        )
    retire_model(connection, model)


def _serving(connection: Connection, settings: Settings, model: str) -> str | None:
    """Say in Spanish how a model serves; None if it does not."""
    promotion = current_promotion(connection)
    if promotion:
        name, serves = promotion.configuration, promotion.model
    else:
        named = load_configurations(settings.configuration_folders).named(DEFAULT_CONFIGURATION)
        name, serves = named.name, named.retrieval.model
    return (
        _(
            "it is that of the configuration that serves, “{configuration}”: promote one of "
            "another model first"
        ).format(configuration=name)
        if serves == model
        else None
    )


def contents_of(database: Database, model: str) -> ModelContents:
    """Return what retiring a model would drop.

    Raises:
        InvalidParameterError: No model ever had this name.
    """
    with database.transaction() as connection:
        return model_contents(connection, model)


def configurations_of(settings: Settings, model: str) -> list[str]:
    """Return the named configurations that need the model and would be lost with it."""
    found = load_configurations(settings.configuration_folders).values()
    return [
        item.name
        for item in found
        if item.retrieval.model == model and item.retrieval.needs_vectors
    ]
