"""`rag model`: a new embedding model, which serves before its vectors are made; a month again."""

from datetime import UTC, datetime
from time import perf_counter
from typing import Annotated

import typer

from rag_resources.cli.output import JsonOption, conclude, note, picked, working
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.languages.messages import _

app = group("model", _("The embedding models: adding one that scores before it finds."))

_SAMPLE = "El martes llevé la furgoneta al taller porque la correa hacía ruido al arrancar. " * 6


@command(app, "add", _("Checks and registers a model, and writes configurations that use it."))
def add(
    name: Annotated[
        str,
        typer.Argument(
            metavar="MODELO",
            help=_("Such as ollama_bge_m3 or openai_text_embedding_3_small."),
        ),
    ],
    find: Annotated[
        str | None,
        typer.Option(
            "--find",
            metavar="CONFIGURACIÓN",
            help=_("The configuration that goes on finding; by default the one that serves."),
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Add a model that scores what another one finds, and finds by itself once backfilled."""
    from rag_resources.core.configuration import NamedConfiguration, ScoreConfig
    from rag_resources.serving.serving import write_configuration

    with application() as opened:
        if find:
            base, retrieval = find, opened.configuration(find).retrieval
        else:
            serving = opened.serving.now()
            base, retrieval = serving.name, serving.config
        with working(_("Trying the model…")):
            embedder = opened.embedder(name)
            began = perf_counter()
            embedder.embed_passages([_SAMPLE])
            passage_ms = 1000 * (perf_counter() - began)
            info = opened.indexing.register(name)
        folder = opened.settings.own_configurations
        listed = tuple(dict.fromkeys((*opened.settings.embedding_models, name)))
    written = []
    for title, changed, described in (
        (
            f"{name}_scores",
            {"score": ScoreConfig(model=name)},
            _("{model} scores what {base} finds."),
        ),
        (f"{name}_finds", {"model": name, "score": None}, _("Like {base}, with {model}.")),
    ):
        made = NamedConfiguration(
            name=title,
            description=described.format(model=name, base=base),
            retrieval=retrieval.model_copy(update=changed),
        )
        written.append(write_configuration(folder, made))
    low, high = info.cosine_range
    conclude(
        _(
            "{model} is registered: dimension {dimension}, scale of cosines {low:.2f} to "
            "{high:.2f}, {passage_ms:.0f} ms per passage."
        ).format(model=name, dimension=info.dimension, low=low, high=high, passage_ms=passage_ms),
        picked(info, "name", "dimension", "provider", "cosine_range")
        | {"passageMs": passage_ms, "configurations": written},
        as_json=as_json,
    )
    note(
        _(
            "Put into .env: RAG_CONFIGURATIONS={folder} and EMBEDDING_MODELS={models}. “rag "
            "evaluate {model}_scores” measures it at once, as it scores what “{base}” finds, and "
            "“rag promote {model}_scores” lets it serve. Meanwhile embeddings/{model} makes its "
            "vectors by months; then “rag evaluate {model}_finds” measures it by itself."
        ).format(folder=folder, models=",".join(listed), model=name, base=base)
    )


@command(
    app,
    "rebuild",
    _(
        "Deletes the vectors of a month's chunks and queues its notes, to be embedded again. "
        "Until then these notes are found by their words."
    ),
)
def rebuild(
    model: Annotated[str, typer.Argument(metavar="MODELO", help=_("As in “rag status”."))],
    month: Annotated[
        datetime,
        typer.Option(
            "--month", metavar="AAAA-MM", formats=["%Y-%m"], help=_("Of the notes' date.")
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Delete a month's vectors of a model and queue its notes."""
    from rag_resources.core.types import TimeWindow

    with application() as opened:
        window = TimeWindow.of_month(month.replace(tzinfo=UTC))
        discarded = opened.indexing.discard_vectors(model, window)
    told = _(
        "Deleted: {vectors} vectors of {notes} notes. “rag run”, or embeddings/{model} in the UI, "
        "makes them again."
    ).format(vectors=discarded.vectors, notes=discarded.notes, model=model)
    conclude(told, discarded._asdict(), as_json=as_json)
