"""Measures first citations without a language model, and refits the weights that rank sentences.

    python -m benchmarks.bench_quotation [FILE...] [--home FOLDER] [--markdown FILE] [--write]

The golden questions with places of your own database are asked, and those of files in the format of
SQuAD, which are indexed in the home folder. Weights are fitted to the questions of all sets, each
set counting the same, and judged out of fold: on questions about notes that no question they were
fitted to names. `--write` stores the weights fitted to all questions.
"""

import argparse
import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from uuid import UUID

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import logsumexp

import rag_resources.answers
from benchmarks.homes import home_folder
from benchmarks.tables import Table, markdown, show
from rag_resources.answers.answerers import QuotationAnswerer, quotation_weights
from rag_resources.answers.citing import passages_of, quoted_ranges
from rag_resources.cli.output import progress
from rag_resources.configurations import DEFAULT_CONFIGURATION, load_configurations
from rag_resources.core.answer_metrics import AnswerFigures, range_in_note
from rag_resources.core.answers import CitedSentence
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.evaluation import QueryOutcome
from rag_resources.core.gate import wilson_interval
from rag_resources.core.golden_places import NoteRange, golden_ranges
from rag_resources.core.quotation import QuotationWeights, RankedSentence
from rag_resources.database.locate import embedded_server, open_database
from rag_resources.database.pool import Connection, Database
from rag_resources.evaluation.answering import Answering
from rag_resources.evaluation.bench import Bench, shown
from rag_resources.evaluation.question_sets import read_question_set
from rag_resources.evaluation.runner import evaluate
from rag_resources.providers.registry import build_embedder
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import Settings, load_settings

FOLDS = 10
PENALTY = 0.01
"""L2 penalty of the weights; it was not tuned."""
NAMES = ("rank", "similarity", "coverage", "context")
WEIGHTS_FILE = Path(rag_resources.answers.__path__[0]) / "quotation.json"

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """A golden question with the sentences that might answer it."""

    outcome: QueryOutcome

    @property
    def relevant(self) -> frozenset[UUID]:
        """The notes that answer it."""
        return frozenset(self.outcome.golden.relevant_note_ids)

    @property
    def fold(self) -> int:
        """The fold that it is judged in, by one of its notes."""
        return int.from_bytes(hashlib.sha256(min(self.relevant).bytes).digest()[:8]) % FOLDS

    @cached_property
    def targets(self) -> tuple[NoteRange, ...]:
        """The ranges that answer it."""
        return golden_ranges(self.outcome.golden.relevant_note_ids, self.outcome.places)

    @cached_property
    def sentences(self) -> list[RankedSentence]:
        """The sentences of what a user gets."""
        passages = passages_of(self.outcome.context)
        return QuotationAnswerer().ranked(self.outcome.golden.query, passages)

    @cached_property
    def numbers(self) -> Weights:
        """The four numbers of each sentence."""
        rows = [(1 / (1 + s.passage), s.similarity, s.coverage, s.context) for s in self.sentences]
        return np.array(rows).reshape(-1, len(NAMES))

    @cached_property
    def right(self) -> npt.NDArray[np.bool_]:
        """Which sentences answer it."""
        ranges = (
            range_in_note(self.outcome.context[s.passage], s.span.start, s.span.end)
            for s in self.sentences
        )
        return np.array([self.is_answered_by(own) for own in ranges], dtype=bool)

    def is_answered_by(self, cited: NoteRange) -> bool:
        """Whether a range overlaps one that answers."""
        return any(cited.overlaps(target) for target in self.targets)

    def first_right(self, weights: Weights, connection: Connection) -> tuple[bool, bool]:
        """Whether the first citation is right: by its sentence, and by what is quoted with it."""
        if not len(self.numbers) or not self.numbers[:, -1].any():
            return False, False
        first = int(np.argmax(self.numbers @ weights))
        own = self.sentences[first]
        said = CitedSentence(own.text, own.passage + 1, own.span, is_quotation=True)
        (block,) = quoted_ranges(connection, [said], self.outcome.context)
        return bool(self.right[first]), self.is_answered_by(block)


def fit(sets: Sequence[Sequence[Question]]) -> Weights:
    """Fit the weights: the likelihood that a sentence drawn by its score answers, penalised."""
    parts = [
        [(q.numbers, q.right) for q in own if q.right.any() and not q.right.all()] for own in sets
    ]

    def loss(weights: Weights) -> tuple[float, Weights]:
        total, slope = PENALTY / 2 * float(weights @ weights), PENALTY * weights
        for own in filter(None, parts):
            for numbers, right in own:
                scores = numbers @ weights
                every, answering = logsumexp(scores), logsumexp(scores[right])
                total += (every - answering) / len(own)
                chances = np.exp(scores - every)
                chances[right] -= np.exp(scores[right] - answering)
                slope = slope + chances @ numbers / len(own)
        return total, slope

    start = np.ones(len(NAMES))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start)).x
    return np.round(found / found.sum(), 3)


def out_of_fold(sets: Sequence[Sequence[Question]]) -> Callable[[Question], Weights]:
    """Return which weights judge a question: fitted to none about the notes of its fold."""
    fitted = {}
    for number in range(FOLDS):
        notes = {note for own in sets for q in own if q.fold == number for note in q.relevant}
        fitted[number] = fit([[q for q in own if not q.relevant & notes] for own in sets])
    return lambda question: fitted[question.fold]


@dataclass(frozen=True)
class AskedSet:
    """The questions of a database, asked."""

    title: str
    database: Database
    questions: list[Question]
    figures: AnswerFigures

    def row(self, title: str, weights: Callable[[Question], Weights]) -> list[str]:
        """Return the first citations that are right with some weights."""
        with self.database.snapshot() as connection:
            right = [own.first_right(weights(own), connection) for own in self.questions]
        return [self.title, title, *(_share(each) for each in zip(*right, strict=True))]

    def silence(self) -> list[str]:
        """Return how well questions with and without their notes are told apart."""
        auc, false = self.figures.answerable, self.figures.false_answers
        return [
            self.title,
            f"{shown(auc.auc)} {shown(auc.auc_low)}–{shown(auc.auc_high)}" if auc else "–",
            f"{shown(false.mean)} {shown(false.low)}–{shown(false.high)}" if false else "–",
        ]


def _share(right: Sequence[bool]) -> str:
    interval = wilson_interval(sum(right), len(right))
    return f"{shown(sum(right) / len(right))} {shown(interval.low)}–{shown(interval.high)}"


def ask(database: Database, settings: Settings, config: RetrievalConfig, title: str) -> AskedSet:
    """Ask the golden questions of a database, with their notes and without."""
    pipeline = RetrievalPipeline(
        database,
        embedder=lambda model: build_embedder(model, settings.servers),
        tenant=settings.tenant,
    )
    made = evaluate(database, pipeline, title, config, answering=Answering(), store=False)
    assert made.summary.answers
    questions = [Question(own) for own in made.outcomes if own.places]
    return AskedSet(title, database, questions, made.summary.answers.figures)


def tables_of(sets: Sequence[AskedSet], fitted: Weights) -> list[Table]:
    """Return what was measured."""
    stored = quotation_weights()
    present = np.array([getattr(stored, name) for name in NAMES])
    apart = out_of_fold([own.questions for own in sets])
    cited = [
        row
        for own in sets
        for row in (
            own.row(f"stored: {_named(present)}", lambda _: present),
            own.row("fitted out of fold", apart),
        )
    ]
    return [
        Table(
            "First citations that are right",
            ("questions", "weights", "by sentence", "by quotation"),
            cited,
            f"Intervals of 95 % by Wilson. Fitted to all: {_named(fitted)}.",
        ),
        Table(
            "Questions with and without their notes, with the stored weights",
            ("questions", "told apart, AUC", "false answers at 10 % misses"),
            [own.silence() for own in sets],
        ),
    ]


def _named(weights: Weights) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in zip(NAMES, weights, strict=True))


def store(weights: Weights) -> None:
    """Write the weights beside the share from which a second sentence is quoted."""
    values = dict(zip(NAMES, weights.tolist(), strict=True))
    made = QuotationWeights(**values, close=quotation_weights().close)
    WEIGHTS_FILE.write_text(f"{json.dumps(made.model_dump())}\n", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="*", metavar="FILE", help="in SQuAD's format")
    parser.add_argument("--home", type=Path, help="folder that keeps the index of the files")
    parser.add_argument("--questions", type=int, help="how many are drawn of each; all by default")
    parser.add_argument("--markdown", type=Path, help="file for the tables")
    parser.add_argument("--write", action="store_true", help="store the fitted weights")
    asked = parser.parse_args(argv)
    with ExitStack() as stack:
        settings = load_settings()
        configurations = load_configurations(settings.configuration_folders)
        config = configurations[DEFAULT_CONFIGURATION].retrieval
        own = stack.enter_context(closing(open_database(settings)))
        sets = [ask(own, settings, config, "your own")]
        if asked.data:
            at_home = load_settings(rag_home=stack.enter_context(home_folder(asked.home)))
            server = embedded_server(at_home)
            server.up()
            stack.callback(server.down)
            bench = Bench(
                at_home,
                server,
                {DEFAULT_CONFIGURATION: configurations[DEFAULT_CONFIGURATION]},
                progress,
            )
        for path in asked.data:
            dataset = read_question_set(path, paragraphs_per_note=1, questions=asked.questions)
            database = stack.enter_context(bench.indexed(dataset))
            sets.append(ask(database, at_home, config, path.name))
        fitted = fit([each.questions for each in sets])
        tables = tables_of(sets, fitted)
    show(tables)
    if asked.markdown:
        asked.markdown.write_text(markdown(tables), encoding="utf-8")
    if asked.write:
        store(fitted)


if __name__ == "__main__":
    main()
