"""How often an extractive answer cites the right sentence, by questions in the format of SQuAD.

    python -m tests.benchmarks.bench_answers FILE [--home FOLDER] [--write]

Each question is asked with the default configuration over notes of one paragraph, and its five
passages are answered from. A sentence is right if it overlaps the place of the answer. The figures
are of five folds by article: a question is answered by a model that was trained without its
article. `--write` trains on all questions and replaces the model in the package.
"""

import argparse
import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from rag_resources.answers import answerers
from rag_resources.cli.output import progress, say
from rag_resources.configurations import DEFAULT_CONFIGURATION, load_configurations
from rag_resources.core import logistic_training
from rag_resources.core.answer_metrics import range_in_note
from rag_resources.core.answers import extract_answer
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.logistic_training import Group
from rag_resources.core.passage_sentences import ScoredPassage, Sentence, sentences_of
from rag_resources.core.sentence_ranking import (
    SentenceFeature,
    SentenceModel,
    rank_sentences,
    sentence_features,
)
from rag_resources.core.significance import bootstrap_intervals
from rag_resources.core.text import Span
from rag_resources.core.types import RetrievalResult
from rag_resources.database.locate import embedded_server
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.providers.registry import build_embedder
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import Settings, load_settings
from rag_resources.store.golden import list_golden
from tests.benchmarks.bench_quality import PATIENT_MS, Bench, read_lengths
from tests.benchmarks.homes import home_folder
from tests.benchmarks.quality_study import Variant

VERSION = "sentences-1"
FOLDS = 5
PENALTY = 0.01
DATABASE = "answers"
MODEL_FILE = Path(answerers.__file__).with_name("sentence_model.json")


@dataclass(frozen=True)
class Asked:
    """A question with its passages.

    Attributes:
        article: Title of the note that answers it; folds are made of articles.
    """

    entry: GoldenEntry
    article: str
    results: tuple[RetrievalResult, ...]

    @property
    def passages(self) -> list[ScoredPassage]:
        """What is answered from."""
        return [
            ScoredPassage(
                result.expanded_content,
                result.score,
                headings=(result.title,),
                matched=result.best_sentences,
            )
            for result in self.results
        ]

    @property
    def group(self) -> Group[SentenceFeature]:
        """Its sentences with their features, for training."""
        candidates = sentences_of(self.passages)
        return Group(
            sentence_features(self.entry.query, self.passages, candidates),
            [self.is_right(own) for own in candidates],
        )

    def is_right(self, sentence: Sentence) -> bool:
        """Whether a sentence overlaps the place of the answer."""
        return self.cites(sentence.passage, sentence.span)

    def cites(self, passage: int, span: Span) -> bool:
        """Whether a range of a passage, by its index, overlaps the place of the answer."""
        place, result = self.entry.places[0], self.results[passage]
        cited = range_in_note(result, span.start, span.end)
        is_inside = place.start < cited.end and cited.start < place.end
        return place.note_id == cited.note_id and is_inside


def fold_of(article: str) -> int:
    """Return the fold of an article, the same in every run."""
    return hashlib.sha256(article.encode()).digest()[0] % FOLDS


def trained(asked: Sequence[Asked], trained_on: str) -> SentenceModel:
    """Fit a model to questions."""
    groups = [group for group in (item.group for item in asked) if group.teaches]
    fitted = logistic_training.fit_conditional(groups, tuple(SentenceFeature), penalty=PENALTY)
    return SentenceModel(
        version=VERSION,
        trained_on=trained_on,
        intercept=fitted.intercept,
        features=dict(fitted.features),
    )


def asked_of(path: Path, home: Path) -> list[Asked]:
    """Index the paragraphs of a file, unless an earlier run did, and ask its questions."""
    settings = load_settings(rag_home=home)
    configurations = load_configurations(settings.configuration_folders)
    config = configurations[DEFAULT_CONFIGURATION].retrieval
    model = config.model or settings.embedding_models[0]
    server = embedded_server(settings)
    server.up()
    try:
        server.ensure_database(DATABASE)
        migrate(server.dsn(DATABASE))
        with Database(server.dsn(DATABASE)) as database:
            dataset = read_lengths(path, [1], None)[(1,)]
            searching = Variant(DEFAULT_CONFIGURATION, model, config)
            Bench(settings, server, [model], [searching])._index(database, dataset, path.name)
            return list(_ask(database, settings, config, model))
    finally:
        server.down()


def _ask(
    database: Database, settings: Settings, config: RetrievalConfig, model: str
) -> Iterator[Asked]:
    with database.transaction() as connection:
        questions = list_golden(connection)
        titles = dict(connection.execute("SELECT id, title FROM notes").fetchall())
    pipeline = RetrievalPipeline(
        database,
        embedder=lambda name: build_embedder(name, settings.servers),
        tenant=settings.tenant,
        note_model=model,
    )
    pipeline.warm_up(config)
    with progress("questions", total=len(questions)) as advance:
        for entry in questions:
            response = pipeline.retrieve(entry.query, config, deadline_ms=PATIENT_MS)
            if response.degraded:
                raise SystemExit(f"{entry.query}: searched without {', '.join(response.degraded)}")
            yield Asked(entry, titles[entry.places[0].note_id], response.results)
            advance(1)


def show(asked: Sequence[Asked]) -> None:
    """Print the figures of the folds."""
    models = [
        trained([item for item in asked if fold_of(item.article) != fold], f"without {fold}")
        for fold in range(FOLDS)
    ]
    begun = time.process_time()
    ranked = [
        rank_sentences(item.entry.query, item.passages, models[fold_of(item.article)])
        for item in asked
    ]
    spent_ms = 1_000 * (time.process_time() - begun) / len(asked)
    cited = [
        [
            item.cites(own.rank - 1, own.span)
            for own in extract_answer(
                item.entry.query, item.passages, models[fold_of(item.article)]
            ).sentences
        ]
        for item in asked
    ]

    def among(depth: int) -> list[float]:
        return [
            float(any(item.is_right(own.sentence) for own in best[:depth]))
            for item, best in zip(asked, ranked, strict=True)
        ]

    notes = [
        float(
            bool(best)
            and item.results[best[0].sentence.passage].note_id == item.entry.places[0].note_id
        )
        for item, best in zip(asked, ranked, strict=True)
    ]
    say(f"{len(asked):,} questions, {FOLDS} folds by article")
    figures = {
        "right sentence @1": among(1),
        "right sentence @2": among(2),
        "right note @1": notes,
        "a right sentence in the answer": [float(any(each)) for each in cited],
    }
    intervals = bootstrap_intervals(np.array(list(figures.values())).T)
    for (title, values), interval in zip(figures.items(), intervals, strict=True):
        say(f"  {title:32} {fmean(values):.3f} [{interval.low:.3f}, {interval.high:.3f}]")
    shown = [own for each in cited for own in each]
    say(f"  {len(shown) / len(asked):.2f} sentences an answer, {fmean(shown):.3f} of them right")
    say(f"  processor {spent_ms:.1f} ms a question")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, and write the model if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, metavar="FILE", help="in the format of SQuAD")
    parser.add_argument("--home", type=Path, help="keeps the index for the next run")
    parser.add_argument("--write", action="store_true", help="replace the model in the package")
    given = parser.parse_args(argv)
    with home_folder(given.home) as home:
        asked = asked_of(given.data, home)
    show(asked)
    if given.write:
        digest = hashlib.sha256(given.data.read_bytes()).hexdigest()
        model = trained(asked, f"{given.data.name}, SHA-256 {digest[:12]}, {len(asked)} questions")
        MODEL_FILE.write_text(model.model_dump_json(indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
