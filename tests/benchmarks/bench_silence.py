"""How well answers are cited, withheld and trusted, on the sample and on a file of SQuAD.

    python -m tests.benchmarks.bench_silence [FILE] [--home FOLDER] [--markdown FILE]

Every question is asked with the default configuration: as it is, with its relevant notes hidden,
and, for FILE, with every note of its article hidden. FILE is in the format of SQuAD, one paragraph
a note; its questions are judged by models that saw no question of the same article. Without FILE
the sample with its large golden set is measured, judged by models that saw no question about the
same notes.
"""

import argparse
import hashlib
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import numpy as np
from rag_resources.core.passage_metrics import NoteRange, golden_ranges

from rag_resources.answers.answerers import QuotationAnswerer
from rag_resources.answers.citing import passages_of
from rag_resources.cli.output import progress
from rag_resources.configurations import DEFAULT_CONFIGURATION, load_configurations
from rag_resources.core.answer_metrics import (
    ANSWER_METRICS,
    AnswerFigures,
    Estimate,
    EvaluatedAnswer,
    citation_metrics,
    cited_ranges,
    summarize_answers,
)
from rag_resources.core.calibration import AskedQuestion, calibrate
from rag_resources.core.evaluation import QueryOutcome
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_places import LocatedPlace
from rag_resources.core.significance import bootstrap_intervals
from rag_resources.core.windows import WindowsConfig
from rag_resources.database.locate import embedded_server
from rag_resources.database.pool import Database
from rag_resources.evaluation.answering import asked_question, hidden_question
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import Settings, load_settings
from tests.benchmarks.bench_quality import PATIENT_MS
from tests.benchmarks.bench_windows import MODEL, Bench, public, questions, sample
from tests.benchmarks.homes import home_folder
from tests.benchmarks.quality_tables import Table, markdown, show

ALLOWED = (0.02, 0.05, 0.1, 0.2, 0.3)
GROUPS = {"all": "", "original 132": "original", "report half": "half:report"}


@dataclass(frozen=True)
class Question:
    """A question with what it found.

    Attributes:
        article: Title of its note; every note of an article is its kin.
        kin: The notes whose questions no model may have seen that judges this one.
        shown: Asked as it is.
        hidden: Asked in other ways, by what was hidden.
    """

    article: str
    kin: frozenset[UUID]
    shown: QueryOutcome
    hidden: Mapping[str, QueryOutcome]


def asked_of(
    bench: Bench, settings: Settings, database: Database, *, by_article: bool
) -> list[Question]:
    """Ask every stored question in every way."""
    config = load_configurations(settings.configuration_folders)[DEFAULT_CONFIGURATION].retrieval
    pipeline = RetrievalPipeline(
        database,
        embedder=bench.embedder,
        tenant=settings.tenant,
        note_model=settings.note_embedding_model,
    )
    pipeline.warm_up(config)
    with database.transaction() as connection:
        titles: dict[UUID, str] = dict(
            connection.execute("SELECT id, title FROM notes ORDER BY id").fetchall()
        )

    def ask(entry: GoldenEntry, hidden: Sequence[UUID]) -> QueryOutcome:
        filters = RetrievalFilters(excluded_note_ids=tuple(hidden))
        found = pipeline.retrieve(entry.query, config, filters=filters, deadline_ms=PATIENT_MS)
        if found.degraded or found.error:
            raise SystemExit(f"not asked in full: {entry.query}")
        return QueryOutcome(
            entry,
            tuple(result.note_id for result in found.results),
            found.latency_ms,
            {},
            context=found.results,
            places=tuple(LocatedPlace(own, own.start, own.end) for own in entry.places),
        )

    made = []
    entries = questions(database)
    bench.embedder(MODEL).embed_queries([entry.query for entry in entries])
    with progress("questions", total=len(entries)) as advance:
        for entry in entries:
            article = titles[entry.relevant_note_ids[0]]
            whole = [key for key, title in titles.items() if title == article]
            ways = {"its notes": entry.relevant_note_ids}
            if by_article:
                ways["its article"] = tuple(whole)
            kin = whole if by_article else entry.relevant_note_ids
            hidden = {way: ask(entry, notes) for way, notes in ways.items()}
            made.append(Question(article, frozenset(kin), ask(entry, ()), hidden))
            advance(1)
    return made


def measure(asked: Sequence[Question], title: str) -> list[Table]:
    """Return the figures of the answers, of silence in each way, and of confidence."""
    begun = time.process_time()
    answered = [_answered(own.shown) for own in asked]
    spent_ms = 1_000 * (time.process_time() - begun) / len(asked)
    answers = {own.shown.key: each for own, (each, _) in zip(asked, answered, strict=True)}
    notes = np.array([[note] for _, note in answered])
    cases = [_kin(asked_question(own.shown, "es"), own) for own in asked]
    rows: list[tuple[str, ...]] = []
    for way in asked[0].hidden:
        hidden = [_kin(hidden_question(own.hidden[way], "es"), own) for own in asked]
        found = calibrate([*cases, *hidden])
        summary = summarize_answers("", answers, found, allowed_misses=0.1).figures
        rows += _silence_rows(way, summary)
    (interval,) = bootstrap_intervals(notes)
    first = [
        (
            "note of the first citation",
            _told(Estimate(mean=float(notes.mean()), low=interval.low, high=interval.high)),
        ),
        *((name, _told(summary.metrics[name])) for name in ANSWER_METRICS),
        ("answered", f"{summary.answered} of {summary.questions}"),
        ("processor, ms an answer", f"{spent_ms:.1f}"),
    ]
    return [
        Table(f"Answers on {title}: {len(asked)} questions", ("figure", "value"), first),
        Table(
            f"Silence on {title}",
            ("hidden", "AUC", "allowed", "misses", "false answers"),
            rows,
        ),
        _confidence(summary, title),
    ]


def _chose_nothing(article: str) -> bool:
    """Whether an article is in the half that did not help to choose the signals."""
    return hashlib.sha256(f"half {article}".encode()).digest()[0] % 2 == 1


def _answered(outcome: QueryOutcome) -> tuple[EvaluatedAnswer, float]:
    """Return the answer, and whether its first citation is of a relevant note."""
    answer = QuotationAnswerer().answer(outcome.golden.query, passages_of(outcome.context))
    cited = cited_ranges(answer, outcome.context)
    if not cited:
        return EvaluatedAnswer((), {}), 0.0
    entry = outcome.golden
    metrics = citation_metrics(cited, golden_ranges(entry.relevant_note_ids, outcome.places))
    first: NoteRange = cited[0][0]
    is_right = float(first.note_id in entry.relevant_note_ids)
    return EvaluatedAnswer(cited, {**metrics, "support": 1.0}), is_right


def _kin(case: AskedQuestion, question: Question) -> AskedQuestion:
    return replace(case, relevant=question.kin)


def _silence_rows(way: str, figures: AnswerFigures) -> list[tuple[str, ...]]:
    curve, claim = figures.silence, figures.answerable
    if curve is None or claim is None:
        return [(way, "–", "–", "–", "–")]
    rows = []
    for allowed in ALLOWED:
        point = curve.at(allowed)
        missed, false = curve.intervals(point)
        rows.append(
            (
                way,
                f"{claim.auc:.3f} [{claim.auc_low:.3f}, {claim.auc_high:.3f}]",
                f"{allowed:.0%}",
                f"{curve.misses(point):.3f} [{missed.low:.3f}, {missed.high:.3f}]",
                f"{curve.false_answers(point):.3f} [{false.low:.3f}, {false.high:.3f}]",
            )
        )
    return rows


def _confidence(figures: AnswerFigures, title: str) -> Table:
    claim = figures.citation
    columns = ("band of the first citation", "right", "questions")
    if claim is None:
        return Table(f"Confidence on {title}: too few questions", columns, [])
    return Table(
        f"Confidence on {title}: AUC {claim.auc:.3f} [{claim.auc_low:.3f}, {claim.auc_high:.3f}], "
        f"Brier {claim.brier:.3f}, always the average {claim.constant_brier:.3f}, "
        f"p {claim.p_value:.4f}",
        columns,
        [
            (
                band.name.value,
                f"{band.precision:.3f} [{band.interval.low:.3f}, {band.interval.high:.3f}]",
                str(band.questions),
            )
            for band in claim.bands
        ],
    )


def _told(found: Estimate) -> str:
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", metavar="FILE")
    parser.add_argument("--home", type=Path, help="keeps the index for the next run")
    parser.add_argument("--markdown", type=Path, help="file for the tables")
    given = parser.parse_args(argv)
    with ExitStack() as stack:
        settings = load_settings(rag_home=stack.enter_context(home_folder(given.home)))
        server = embedded_server(settings)  # never the database that is in use
        server.up()
        stack.callback(server.down)
        bench = Bench(settings, server)
        corpus = public(given.data, 1, settings) if given.data else sample(settings)
        database = bench.open(stack, "silence", corpus)
        bench.cut(database, WindowsConfig())
        asked = asked_of(bench, settings, database, by_article=bool(given.data))
    if given.data:
        kept = [own for own in asked if _chose_nothing(own.article)]
        tables = measure(asked, corpus.title)
        tables += measure(kept, f"{corpus.title}, articles that chose no signal")
    else:
        tables = []
        for title, tag in GROUPS.items():
            own = [item for item in asked if not tag or tag in item.shown.golden.tags]
            tables += measure(own, f"{corpus.title}, {title}")
    show(tables)
    if given.markdown:
        given.markdown.write_text(markdown(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
