"""The console output of the main job: progress read from the database, and the results."""

import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from rag_assets.configured import Configured
from rag_resources.application import Application
from rag_resources.application.documents import MonthCount
from rag_resources.cli.output import is_quiet, say, show_table, warn
from rag_resources.cli.status import documents_in_words
from rag_resources.cli.survey_report import (
    show_moved,
    show_rejected,
    show_undated,
    show_unread,
)
from rag_resources.configurations import DEFAULT_CONFIGURATION, Configurations
from rag_resources.core.configuration import Role
from rag_resources.core.errors import RagError
from rag_resources.core.evaluation import judge_stored
from rag_resources.core.serving_choice import ahead_in_mrr
from rag_resources.core.types import TimeWindow
from rag_resources.documents.web import without_credentials
from rag_resources.evaluation.summary import comparison_table
from rag_resources.ingestion.ingest import outside_in_words
from rag_resources.languages.messages import _, ngettext
from rag_resources.programs import UI, running_program
from rag_resources.store.document_list import UnreadDocument
from rag_resources.store.promotions import Promotion

REFRESH_S = 0.5
PATIENCE = 20
"""The pause between two readings of the progress, as a multiple of the last reading's time."""
SHOWN, SHOWN_UNDATED, SHOWN_DOCUMENTS = 20, 5, 5


@contextmanager
def progress_bars(application: Application, window_models: Sequence[str] = ()) -> Iterator[None]:
    """Show the index's progress, read from the database, while the runs work."""
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        disable=is_quiet(),
    )
    notes = bars.add_task(_("Notes ingested"), total=0)
    note_vectors = bars.add_task(_("Notes with a vector"), total=0)
    chunked = bars.add_task(_("Notes chunked"), total=0)
    models: dict[str, TaskID] = {
        model: bars.add_task(_("Chunks with vectors of {model}").format(model=model), total=0)
        for model in application.migration.models
    }
    windows: dict[str, TaskID] = {
        model: bars.add_task(_("Chunks with windows of {model}").format(model=model), total=0)
        for model in window_models
    }

    def refresh() -> None:
        try:
            now = application.migration.progress()
        except RagError:  # The run itself will report the problem.
            return
        bars.update(notes, completed=now.notes, total=now.notes)
        bars.update(note_vectors, completed=now.note_vectors, total=now.notes)
        bars.update(chunked, completed=now.chunked, total=now.notes)
        for model, task in models.items():
            bars.update(task, completed=now.vectors.get(model, 0), total=now.chunks)
        for model, task in windows.items():
            bars.update(task, completed=now.windows.get(model, 0), total=now.chunks)

    finished = threading.Event()

    def watch() -> None:
        pause_s = REFRESH_S
        while not finished.wait(pause_s):
            started = monotonic()
            refresh()
            # Counting a large index takes time, which the runs need.
            pause_s = max(REFRESH_S, PATIENCE * (monotonic() - started))

    watcher = threading.Thread(target=watch, daemon=True)
    with bars:
        watcher.start()
        try:
            yield
        finally:
            finished.set()
            watcher.join()
            refresh()


def tell_phase(message: str) -> None:
    """Say what begins now, unless it is shown on a terminal while it lasts."""
    if not (is_quiet() or sys.stdout.isatty()):
        say(message)
        sys.stdout.flush()


def evaluating(names: Sequence[str]) -> str:
    """Say which configurations are evaluated; without any, it is only decided which serves."""
    if not names:
        return _("Deciding which configuration serves…")
    return _("Evaluating: {names}…").format(names=", ".join(names))


@dataclass(frozen=True, slots=True)
class Unread:
    """How much of the source could not be read.

    Attributes:
        records: Records of notes that were rejected.
        documents: Documents that could not be read.
    """

    records: int
    documents: int


def tell_unread(application: Application, window: TimeWindow) -> Unread:
    """Show what could not be read, notes without a date, and notes that no month processes.

    Args:
        application: Of the main job.
        window: All months.

    Returns:
        How many there are, to be repeated by `tell_unread_again`.
    """
    documents = tell_documents(
        application.documents.count(window),
        application.documents.unread(limit=SHOWN_DOCUMENTS),
        application.documents.count_missing(),
        application.settings.documents_source,
    )
    rejections, rejected = application.notes.rejections(limit=SHOWN)
    show_rejected(rejections, rejected)
    undated, count = application.notes.undated(limit=SHOWN_UNDATED)
    show_undated(undated, count)
    settings = application.settings
    if settings.notes_source:
        moved = application.notes.moved(settings.notes_source, source=settings.notes_source_name)
        show_moved(moved)
    if outside := application.notes.outside(window, limit=SHOWN):
        warn(outside_in_words(outside))
    return Unread(rejected, documents)


def tell_documents(
    counted: MonthCount, unread: Sequence[UnreadDocument], missing: int, source: str | None
) -> int:
    """Say how many documents were read, or could not be and why; return how many could not.

    Args:
        counted: All documents.
        unread: The first of those that could not be read.
        missing: How many have no file any more.
        source: Where documents are read from; None if none are.
    """
    failed = counted.statuses.get("failed", 0)
    if counted.documents:
        tell = warn if failed or missing else say
        tell(documents_in_words(counted.documents, failed, missing))
        show_unread(unread)
    elif source:
        warn(
            _(
                "There are no documents: DOCUMENTS_SOURCE ({source}) has none that is read. "
                "docs/documents.md says which formats are."
            ).format(source=without_credentials(source))
        )
    return failed


def tell_unread_again(unread: Unread) -> None:
    """Repeat at the end how much could not be read, and where the reasons are."""
    if unread.records:
        warn(
            _(
                "Rejected records: {count}. They are further up and in “rag status”, each with "
                "its reason."
            ).format(count=unread.records)
        )
    if unread.documents:
        warn(
            _(
                "Documents that could not be read: {count}. They are in “rag document list”, each "
                "with its reason."
            ).format(count=unread.documents)
        )


def tell_how_to_evaluate() -> None:
    """Say that the notes can be searched, and how to write questions to evaluate with."""
    say(
        _(
            "The notes are indexed and can be searched. There are no golden questions with an "
            "answer, so nothing is evaluated or promoted."
        )
    )
    say(
        _(
            "To evaluate: fill in a file of questions (“rag init FOLDER” proposes 20), name it in "
            "GOLDEN_SOURCE and repeat. One looks like this:"
        )
    )
    say(json.dumps({"entries": [_EXAMPLE]}, ensure_ascii=False, indent=1))


_EXAMPLE = {
    "query": str(_("¿qué pasó con la insulina durante el apagón?")),
    "relevantNotes": ["2025-04-29-apagon"],
    "expectedAnswer": str(_("It lasts four weeks below 25 degrees.")),
    "category": "factual",
    "difficulty": 2,
}
"""A question of the sample, as a golden file has it."""


def print_results(
    application: Application, configured: Configured, before: Promotion | None
) -> None:
    """Print the table of the configurations that are switched on, and what serves.

    Args:
        application: Open.
        configured: What is configured.
        before: What served before this run.
    """
    latest = [
        item
        for item in application.evaluations.latest_of_each()
        if item.configuration in configured.configurations
    ]
    promotion = application.serving.promotion()
    queries = max((item.total_queries for item in latest), default=0)
    compared = comparison_table(
        latest,
        application.evaluations.gate,
        application.evaluations.evidence(latest),
        title=ngettext(
            "Configurations evaluated with {queries} question (@k: Hit_Rate@k)",
            "Configurations evaluated with {queries} questions (@k: Hit_Rate@k)",
            queries,
        ).format(queries=queries),
    )
    show_table(compared, whole=True)
    references = [
        item.configuration
        for item in latest
        if application.configuration(item.configuration).role is Role.REFERENCE
    ]
    if references:
        say(
            _("Only measured to compare with, never promoted: {names}.").format(
                names=", ".join(references)
            )
        )
    off = configured.configurations.switched_off
    if off:
        names = ", ".join(sorted(off))
        say(
            _(
                "Neither evaluated nor promoted, because their model is not in EMBEDDING_MODELS: "
                "{names}."
            ).format(names=names)
        )
    if promotion:
        say(
            _("The configuration “{name}” serves, with the model {model}.").format(
                name=promotion.configuration, model=promotion.model
            ),
        )
        reasons = application.serving.refusals(configured.configurations)
        if before and _version(before) != _version(promotion):
            why = why_replaced(before, configured.configurations, reasons)
            told = _("“{name}” served until now: {reason}.").format(
                name=before.configuration, reason=why
            )
            say(told)
        candidates = [item for item in latest if item.configuration not in references]
        ahead = ahead_in_mrr(candidates, promotion.configuration)
        _print_reasons(_("Others have a higher MRR and do not replace it:"), ahead, reasons)
        passing = [
            item.configuration
            for item in candidates
            if item.configuration not in (*ahead, promotion.configuration)
            and judge_stored(item, application.evaluations.gate).allows_promotion
        ]
        refused = [name for name in passing if name in reasons]
        _print_reasons(
            _("They pass the gate of Hit_Rate@10 and cannot serve all the same:"), refused, reasons
        )
    else:
        say(
            _("No configuration was promoted yet: until then “{default}” answers.").format(
                default=DEFAULT_CONFIGURATION
            )
        )
    ui = running_program(application.settings.rag_home, UI)
    where = (
        _("Look at the Dagster UI at {url}").format(url=ui.address)
        if ui
        else _("Open the Dagster UI with “rag ui” (or “make ui”)")
    )
    say(
        _('{where}, or ask with “rag retrieve "…"” (in the checkout, “.venv/bin/rag”).').format(
            where=where
        )
    )


def _version(promotion: Promotion) -> tuple[str, str]:
    return promotion.configuration, promotion.config_hash


def why_replaced(
    before: Promotion, configurations: Configurations, refusals: Mapping[str, str]
) -> str:
    """Say why what served until a run does not serve any more.

    Args:
        before: The promotion of what served.
        configurations: Those that a promotion chooses among.
        refusals: Why candidates would not be promoted, by name.
    """
    name = before.configuration
    if off := configurations.switched_off.get(name):
        return _("its model, {model}, is no longer in EMBEDDING_MODELS").format(
            model=off.retrieval.model
        )
    own = configurations.get(name)
    if own is None or own.retrieval.config_hash != before.config_hash:
        return _(
            "it was a version that is in no file any more, and “rag run” chooses among those of "
            "the files"
        )
    return refusals.get(
        name, _("it passes the gate, but the new one is the best of those that pass")
    )


def _print_reasons(headline: str, names: Sequence[str], reasons: Mapping[str, str]) -> None:
    """Print why configurations do not serve, those with the same reason together."""
    names_of: dict[str, list[str]] = {}
    for name in names:
        names_of.setdefault(
            reasons.get(
                name,
                _(
                    "its MRR is higher, but with these questions what sets it apart from what "
                    "served already (at first, the default) may be chance"
                ),
            ),
            [],
        ).append(name)
    if names_of:
        say(headline)
    for reason, alike in names_of.items():
        told = _("  - {name}: {reason}.").format(name=", ".join(alike), reason=reason)
        say(told)
