"""What a quality benchmark compares and chooses, once every variant is measured; no I/O.

Measuring is `bench_quality`, showing is `quality_tables`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Literal
from uuid import UUID

from rag_resources.core.comparison import COMPARED, Comparison, QueryMetrics, compare_pairs
from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    parse_retrieval,
    with_overrides,
)
from rag_resources.core.experiment import Selection, choose, split_questions
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.metrics import SERVED

RANKED = tuple(metric for metric in COMPARED if metric != SERVED)
"""The compared metrics of a ranking: a study asks for more passages than a user gets."""

METHODS: tuple[Literal["weighted", "rrf"], ...] = ("weighted", "rrf")
SEMANTIC_WEIGHTS = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Full text has the rest of 1."""

SELECTION = Selection()


@dataclass(frozen=True, slots=True)
class Variant:
    """A configuration with one embedding model; `model` is empty if a question needs none."""

    name: str
    model: str
    config: RetrievalConfig


@dataclass(frozen=True, slots=True)
class Measured:
    """What is kept of an evaluation.

    Attributes:
        per_query: The metrics that are shown, of each question.
        p50_ms: Of a retrieval whose question was embedded before.
        impaired: Questions that failed, or whose search went without some stage.
        passages: Metrics per passage of each question: its answer is its place.
    """

    per_query: QueryMetrics
    p50_ms: float
    impaired: int
    passages: QueryMetrics


@dataclass(frozen=True, slots=True)
class Length:
    """All variants over the notes of one length.

    Attributes:
        paragraphs: Of a note: several numbers if they make the same notes.
        questions: Stored.
        measured: By hash of the configuration.
    """

    paragraphs: tuple[int, ...]
    notes: int
    chunks: int
    questions: Sequence[GoldenEntry]
    measured: Mapping[str, Measured]

    @property
    def title(self) -> str:
        """How many paragraphs a note has."""
        return length_title(self.paragraphs)

    def of(self, variant: Variant) -> QueryMetrics:
        """Return what was measured of a variant."""
        return self.measured[variant.config.config_hash].per_query


@dataclass(frozen=True, slots=True)
class Contrast:
    """The default against another variant, over the same notes.

    Attributes:
        default: With the model of the other, or with its own against other models.
    """

    length: Length
    default: Variant
    other: Variant


@dataclass(frozen=True, slots=True)
class Scope:
    """Models and lengths that a way of fusing is chosen for; a question counts by its mean there.

    Attributes:
        chosen: By the questions that do not judge; several if parts of them disagree.
        default: The judging questions by the default.
        judged: The same by what was chosen without them.
    """

    title: str
    chosen: tuple[str, ...]
    default: QueryMetrics
    judged: QueryMetrics


@dataclass(frozen=True, slots=True)
class Study:
    """All that is compared, corrected by Holm as one family."""

    contrasts: list[tuple[Contrast, Comparison]]
    scopes: list[tuple[Scope, Comparison]]


def length_title(paragraphs: Sequence[int]) -> str:
    """Say how many paragraphs a note has."""
    noun = "paragraph" if tuple(paragraphs) == (1,) else "paragraphs"
    return f"{' or '.join(map(str, paragraphs))} {noun} per note"


def named_variants(
    configurations: Mapping[str, NamedConfiguration], models: Sequence[str], default: str
) -> list[Variant]:
    """Return every named configuration with every model, the default's first.

    Those that differ by nothing but their names are one.
    """
    variants: dict[str, Variant] = {}
    for name in sorted(configurations, key=lambda name: (name != default, name)):
        config = configurations[name].retrieval
        for model in models if config.uses_vectors else ("",):
            made = with_overrides(config, {"model": model or None})
            variants.setdefault(made.config_hash, Variant(name, model, made))
    return list(variants.values())


def fusion_variants(default: Variant) -> list[Variant]:
    """Return the default with every way of fusing, named by it."""
    made = []
    for method, weight in product(METHODS, SEMANTIC_WEIGHTS):
        retrievers = {
            "semantic": {"weight": weight},
            "fulltext": {"weight": round(1 - weight, 1)},
        }
        base = default.config.model_dump()
        fusion = base["fusion"] | {"method": method}
        config = parse_retrieval(
            base | {"fusion": fusion, "retrievers": retrievers}, origin="study"
        )
        made.append(Variant(f"{method} {weight:.1f}", default.model, config))
    return made


def study(
    lengths: Sequence[Length], variants: Sequence[Variant], defaults: Sequence[Variant]
) -> Study:
    """Compare the default with everything else, and with what the questions would choose.

    Args:
        lengths: Each with all variants, and those of `fusion_variants`, measured.
        variants: Of `named_variants`.
        defaults: Those of them that are the default, one per model, its own model first.
    """
    contrasts = [
        Contrast(length, default, other)
        for length in lengths
        for default, other in _contrasted(variants, defaults)
    ]
    scopes = _scopes(lengths, defaults)
    compared = compare_pairs(
        [(one.length.of(one.other), one.length.of(one.default)) for one in contrasts]
        + [(scope.default, scope.judged) for scope in scopes]
    )
    return Study(
        list(zip(contrasts, compared[: len(contrasts)], strict=True)),
        list(zip(scopes, compared[len(contrasts) :], strict=True)),
    )


def _contrasted(
    variants: Sequence[Variant], defaults: Sequence[Variant]
) -> Iterator[tuple[Variant, Variant]]:
    for default in defaults:
        for other in variants:
            if other.name != default.name and other.model in {"", default.model}:
                yield default, other
    for other in defaults[1:]:
        yield defaults[0], other


def _scopes(lengths: Sequence[Length], defaults: Sequence[Variant]) -> list[Scope]:
    """Choose for all models and lengths, for each model, and for each length of each model."""
    measured = {
        (default.model, length.title): {
            variant.name: length.of(variant) for variant in (default, *fusion_variants(default))
        }
        for default in defaults
        for length in lengths
    }
    keys = frozenset.intersection(*(frozenset(length.of(defaults[0])) for length in lengths))
    questions = [entry for entry in lengths[0].questions if entry.golden_id in keys]
    split = split_questions(questions, SELECTION)
    groups = {"all": list(measured)}
    groups |= {own.model: [cell for cell in measured if cell[0] == own.model] for own in defaults}
    groups |= {", ".join(cell): [cell] for cell in measured}
    scopes: dict[tuple[tuple[str, str], ...], Scope] = {}
    for title, cells in groups.items():
        candidates = _pooled([measured[cell] for cell in cells], keys)
        choice = choose(candidates, split, SELECTION.metric)
        default = {key: candidates[defaults[0].name][key] for key in choice.judged}
        chosen = tuple(dict.fromkeys(choice.by_part))
        # One model or one length alone is its own "all".
        scopes.setdefault(tuple(cells), Scope(title, chosen, default, choice.judged))
    return list(scopes.values())


def _pooled(
    cells: Sequence[Mapping[str, QueryMetrics]], keys: Collection[UUID]
) -> dict[str, QueryMetrics]:
    """Average each metric of each question over cells, by candidate."""
    return {
        name: {
            key: {metric: fmean(cell[name][key][metric] for cell in cells) for metric in RANKED}
            for key in keys
        }
        for name in cells[0]
    }
