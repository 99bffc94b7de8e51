"""Experiments: many configurations over the same questions, and an unbiased choice among them.

A configuration chosen on some questions is judged on others, since its figures on the questions
that chose it are biased upwards. Running an experiment belongs in `evaluation.experiment`.
"""

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_resources.core.comparison import QueryMetrics
from rag_resources.core.configuration import (
    RetrievalConfig,
    nested_fields,
    with_overrides,
)
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.quoting import shown
from rag_resources.core.retrievers import KINDS, RetrieverName
from rag_resources.core.validation import describe_problems
from rag_resources.languages.messages import _

MAX_CONFIGURATIONS = 200
NAMED_PROBLEMS = 50
"""Most problems of an experiment's configurations that are named; the rest are only counted."""

Metric = Literal["mrr", "ndcg_at_10", "hit_rate_at_10", "hit_rate_at_5", "hit_rate_at_3"]


class Selection(BaseModel):
    """How the best configuration is chosen.

    Attributes:
        metric: The metric whose mean decides; the highest wins.
        folds: The number of folds for cross-validation.
        seed: Seed of the split.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: Metric = "mrr"
    folds: int = Field(5, ge=2, le=20)
    seed: int = 1


class Experiment(BaseModel):
    """An experiment as people write it.

    Attributes:
        name: The name for titles.
        base: The named configuration that all others start from and are compared with.
        grid: Values of fields (`retrievers.semantic.weight`); all combinations are tried.
        configurations: Fields to change together, by the name of the resulting configuration.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=100)
    base: str
    grid: dict[str, list[Any]] = {}
    configurations: dict[str, dict[str, Any]] = {}
    selection: Selection = Selection()


@dataclass(frozen=True, slots=True)
class Choice:
    """The result of choosing.

    Attributes:
        best: The best configuration over all questions: the one to use. Its own figures over these
            questions are biased upwards.
        by_part: For each part, the configuration that the questions outside it chose.
        judged: Every metric of the questions of the parts, each with the configuration chosen
            without them.
    """

    best: str
    by_part: tuple[str, ...]
    judged: QueryMetrics


def parse_experiment(raw: Any, *, origin: str) -> Experiment:
    """Read an experiment.

    Raises:
        InvalidConfigurationError: It is invalid; every problem is named.
    """
    headline = _("{origin} is not valid; nothing was changed:").format(origin=origin)
    try:
        experiment = Experiment.model_validate(raw)
    except ValidationError as error:
        raise InvalidConfigurationError(headline, describe_problems(error, Experiment)) from error
    problems = [
        _("grid.{field}: has no value.").format(field=shown(name))
        for name, values in experiment.grid.items()
        if not values
    ]
    if not experiment.grid and not experiment.configurations:
        problems.append(
            _("There is nothing to try: give values in “grid”, or names in “configurations”.")
        )
    if problems:
        raise InvalidConfigurationError(headline, problems)
    return experiment


def expand(experiment: Experiment, base: RetrievalConfig) -> dict[str, RetrievalConfig]:
    """Return every configuration to try, the base first.

    Configurations with equal hashes are tried once, under the first name.

    Args:
        experiment: A parsed experiment.
        base: Its base configuration.

    Raises:
        InvalidConfigurationError: A combination is invalid (every problem is named once), or
            there are too many combinations.
    """
    variants: dict[str, Mapping[str, Any]] = {experiment.base: {}}
    combinations = math.prod(map(len, experiment.grid.values())) if experiment.grid else 0
    # Counted before they are made: ten fields with ten values give ten thousand million.
    count = 1 + combinations + len(experiment.configurations)
    if count > MAX_CONFIGURATIONS:
        message = _(
            "The experiment has {count} configurations, and {maximum} are allowed: reduce the "
            "values of “grid”."
        ).format(count=count, maximum=MAX_CONFIGURATIONS)
        raise InvalidConfigurationError(message, [])
    if combinations:
        for values in itertools.product(*experiment.grid.values()):
            changes = dict(zip(experiment.grid, values, strict=True))
            variants[_label(changes, experiment.grid)] = nested_fields(changes)
    variants |= {name: nested_fields(item) for name, item in experiment.configurations.items()}
    made: dict[str, RetrievalConfig] = {}
    concerned: dict[str, list[str]] = {}
    seen: set[str] = set()
    for name, overrides in variants.items():
        try:
            config = with_overrides(base, overrides)
        except InvalidConfigurationError as error:
            for problem in error.problems:
                concerned.setdefault(problem, []).append(name)
            continue
        if config.config_hash not in seen:
            made[name] = config
            seen.add(config.config_hash)
    if concerned:
        headline = _("{origin} is not valid; nothing was changed:").format(origin=experiment.name)
        raise InvalidConfigurationError(headline, _described(concerned))
    return made


def _described(concerned: Mapping[str, Sequence[str]]) -> list[str]:
    """One line per problem, with the first configuration that has it; a long list is cut.

    Args:
        concerned: Names of configurations, by problem.
    """
    lines = []
    for problem, (first, *others) in itertools.islice(concerned.items(), NAMED_PROBLEMS):
        more = _(" (and {count} more)").format(count=len(others)) if others else ""
        lines.append(f"{shown(first)}{more}: {problem}")
    left = len(concerned) - len(lines)
    return [*lines, _("… and other problems: {count}").format(count=left)] if left else lines


def split_questions(
    entries: Sequence[GoldenEntry], selection: Selection
) -> tuple[frozenset[UUID], ...]:
    """Cut the golden questions into parts for cross-validation.

    Questions with the same first relevant note are in one part, so that no note both chooses and
    judges a configuration by its questions. The place of a note depends only on its questions and
    the seed.

    Args:
        entries: Stored entries, so that each has its id.
        selection: Folds and seed.

    Returns:
        Disjoint parts of similar size, at most as many as there are such notes; each judges the
        configuration that the questions outside it chose.
    """
    groups: dict[UUID, list[GoldenEntry]] = {}
    for entry in sorted(entries, key=lambda each: _place(each, selection.seed)):
        groups.setdefault(entry.relevant_note_ids[0], []).append(entry)
    parts: list[set[UUID]] = [set() for _ in range(min(selection.folds, len(groups)))]
    for members in sorted(groups.values(), key=lambda group: -len(group)):
        min(parts, key=len).update(each.golden_id for each in members if each.golden_id)
    return tuple(map(frozenset, parts))


WORDS_SHARES = (0.3, 0.4, 0.5, 0.6)
WINDOWS_SHARES = (0.33, 0.5, 0.67)
"""What `weights_experiment` tries: the weight of words, and the share of windows in the rest."""


def weights_experiment(name: str, base: RetrievalConfig) -> Experiment:
    """Return the experiment that tries other weights of a configuration's retrievers.

    Args:
        name: Of the configuration.
        base: It, by vectors and by words.

    Raises:
        InvalidConfigurationError: It has no two retrievers to weigh.
    """
    by_vectors = [own for own in base.searched if KINDS[own].searches_by == "vectors"]
    if not by_vectors or RetrieverName.FULLTEXT not in base.searched:
        raise InvalidConfigurationError(
            _(
                "“{name}” does not search by vectors and by words: there is nothing to weigh."
            ).format(name=name),
            [],
        )
    shares = WINDOWS_SHARES if len(by_vectors) > 1 else (1.0,)
    tried = {}
    for words, windows in itertools.product(WORDS_SHARES, shares):
        parts = {RetrieverName.FULLTEXT: words}
        for own in by_vectors:
            share = windows if own is RetrieverName.WINDOWS or len(by_vectors) == 1 else 1 - windows
            parts[own] = round((1 - words) * share, 3)
        label = ", ".join(f"{own} {weight:g}" for own, weight in parts.items())
        tried[label] = {
            "retrievers": {own.value: {"weight": weight} for own, weight in parts.items()}
        }
    return Experiment(name=str(_("Weights")), base=name, configurations=tried)


def choose(
    results: Mapping[str, QueryMetrics], parts: Sequence[frozenset[UUID]], metric: Metric
) -> Choice:
    """For each part, choose the best configuration without it and judge that one on the part.

    Args:
        results: Every metric of every question, by configuration; all have the same questions.
        parts: Of those questions, as `split_questions` cuts them.
        metric: The metric whose mean decides; ties go to the configuration that comes first.

    Source: nested cross-validation, Cawley and Talbot, JMLR 2010, 11:2079-2107.
    """
    questions = next(iter(results.values())).keys()
    by_part = tuple(_best(results, questions - part, metric) for part in parts)
    judged = {
        key: results[name][key] for name, part in zip(by_part, parts, strict=True) for key in part
    }
    return Choice(_best(results, questions, metric), by_part, judged)


def _best(results: Mapping[str, QueryMetrics], keys: Collection[UUID], metric: Metric) -> str:
    return max(results, key=lambda name: fmean(results[name][key][metric] for key in keys))


def _place(entry: GoldenEntry, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\n{entry.normalized_query}".encode()).digest()


def _label(changes: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]) -> str:
    """Name a combination by the fields that vary, without their groups if that is unambiguous."""
    varied = [field for field in changes if len(grid[field]) > 1] or list(changes)
    last = Counter(field.rpartition(".")[2] for field in varied)
    names = {
        field: short if last[short := field.rpartition(".")[2]] == 1 else field for field in varied
    }
    return ", ".join(f"{names[field]}={changes[field]}" for field in varied)
