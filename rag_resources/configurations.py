"""Reads named retrieval configurations from folders, and writes new ones.

Their type is in `core.configuration`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog
import yaml

from rag_resources.core.configuration import (
    NamedConfiguration,
    RetrievalConfig,
    parse_configuration,
)
from rag_resources.core.errors import InvalidConfigurationError, unreadable
from rag_resources.core.fusion_config import MODEL_NAME
from rag_resources.core.model_names import is_model_name, unknown_model
from rag_resources.core.quoting import shown
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.yaml_text import (
    DuplicateKeyError,
    Lines,
    load_yaml,
    problem_of,
    refuse_duplicate_keys,
)
from rag_resources.languages.messages import Text, _, joined

DEFAULT_CONFIGURATION = "hybrid_windows"
"""The configuration that serves before the first promotion."""

BASELINE_CONFIGURATION = "baseline"
"""It searches whole notes: the start of a migration, and the target of a rollback to notes."""

_log = structlog.get_logger(__name__)

SUFFIXES = frozenset({".yaml", ".yml"})


class Configurations(dict[str, NamedConfiguration]):
    """The named configurations of some folders, by name, and what is wrong with other files there.

    A file that is wrong is left out, so that it stops nobody who does not ask for it.

    Attributes:
        problems: What is wrong with each file that was left out, with its path and line.
        switched_off: Those that `switched_on` left out.
        left_out: The names of the files that are wrong.
    """

    def __init__(
        self,
        valid: Mapping[str, NamedConfiguration],
        problems: Sequence[str] = (),
        switched_off: Mapping[str, NamedConfiguration] | None = None,
        left_out: Collection[str] = (),
    ) -> None:
        super().__init__(valid)
        self.problems = tuple(problems)
        self.left_out = frozenset(left_out)
        self.switched_off = dict(switched_off or {})

    def switched_on(self, has_vectors: Callable[[RetrievalConfig], bool]) -> "Configurations":
        """Return those whose vectors are made: a model that is off takes its own with it."""
        on = {name: item for name, item in self.items() if has_vectors(item.retrieval)}
        off = {name: item for name, item in self.items() if name not in on}
        return Configurations(on, self.problems, off, self.left_out)

    def notice_of_same(self, named: NamedConfiguration) -> Text | None:
        """Return a warning if others search in the same way, as when a change was not saved."""
        wanted = named.retrieval.config_hash
        same = [
            name
            for name, item in self.items()
            if name != named.name and item.retrieval.config_hash == wanted
        ]
        if not same:
            return None
        return _(
            "“{name}” has the same fields as {others}: it searches in the same way. If you "
            "changed the file, check that it is saved."
        ).format(name=named.name, others=joined(", ", same))

    def named(self, name: str) -> NamedConfiguration:
        """Return a configuration.

        Raises:
            InvalidConfigurationError: No valid file has this name, or its model is switched off.
                The message lists those that there are, and what is wrong with the others.
        """
        if off := self.switched_off.get(name):
            notes = off.retrieval.unit == "notes"
            headline = _(
                "“{name}” searches with {model}, which is not in {setting}: it is neither "
                "evaluated by runs nor promoted. Add it there."
            ).format(
                name=name,
                model=off.retrieval.model,
                setting="NOTE_EMBEDDING_MODEL" if notes else "EMBEDDING_MODELS",
            )
            raise InvalidConfigurationError(headline, [])
        if name not in self:
            known = ", ".join(self)
            headline = _("“{value}” is not one of the options: {expected}").format(
                value=name, expected=known
            )
            raise InvalidConfigurationError(headline, list(self.problems))
        return self[name]


def vector_kinds(folders: Iterable[Path], model: str) -> set[VectorKind]:
    """Return the kinds of vectors of chunks that the configurations of a model search."""
    kinds = {VectorKind.CHUNK}
    for item in load_configurations(folders).values():
        if item.retrieval.model == model:
            kinds |= item.retrieval.vector_kinds
    return kinds - {VectorKind.NOTE}


def load_configurations(folders: Iterable[Path]) -> Configurations:
    """Read every YAML file of these folders, in order of names; those that are wrong are left out.

    Of two files with one name the first is kept.
    """
    found: dict[str, NamedConfiguration] = {}
    origins: dict[str, Path] = {}
    problems: list[str] = []
    left_out: list[str] = []
    for path in _files(folders, problems):
        try:
            configuration = load_configuration(path)
        except InvalidConfigurationError as error:
            left_out.append(path.stem)
            problems.extend(joined(": ", (str(path), problem)) for problem in error.problems)
            continue
        if configuration.name in found:
            problems.append(
                _(
                    "The configuration “{name}” is in two files, {first} and {second}. The first "
                    "one counts; rename the other."
                ).format(name=configuration.name, first=origins[configuration.name], second=path)
            )
            continue
        found[configuration.name] = configuration
        origins[configuration.name] = path
    return Configurations(found, problems, left_out=left_out)


class ConfigurationFiles:
    """The named configurations of some folders for a program that goes on.

    They are read again whenever a file was added, changed or removed.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)
        self._latest: tuple[list[tuple[Path, int, int]], Configurations] | None = None

    def read(self) -> Configurations:
        """Return the configurations as the files are now."""
        state = self._state()
        if self._latest is None or self._latest[0] != state:
            found = load_configurations(self._folders)
            if found.problems:
                _log.warning("configurations_left_out", problems=[*map(str, found.problems)])
            self._latest = state, found
        return self._latest[1]

    def _state(self) -> list[tuple[Path, int, int]]:
        """Return the files with the time of their last change and their size."""
        found = []
        for path in _files(self._folders, []):
            with suppress(OSError):  # Then reading it says why.
                stat = path.stat()
                found.append((path, stat.st_mtime_ns, stat.st_size))
        return found


def load_configuration(path: Path) -> NamedConfiguration:
    """Read one file; its name is the configuration's name.

    Raises:
        InvalidConfigurationError: The file is invalid; every problem is named.
    """
    headline = _("{origin} is not valid; nothing was changed:").format(origin=path)
    raw, lines = _read(path, headline=headline)
    problems: list[str] = [*_wrong_names(raw, path, lines)]
    try:
        configuration = parse_configuration(raw, origin=str(path), lines=lines)
    except InvalidConfigurationError as error:
        problems = sorted([*error.problems, *problems], key=_line_of)
        raise InvalidConfigurationError(headline, problems, **error.context) from error
    if problems:
        raise InvalidConfigurationError(headline, problems)
    return configuration


def _wrong_names(raw: Any, path: Path, lines: Lines) -> Iterator[Text]:
    """Yield what is wrong with the names in a file: those of models, and its own."""
    for place in (("retrieval", "model"), ("retrieval", "reranking", "model")):
        name = _at(raw, place)
        # What cannot be a name is told by `parse_configuration`.
        if isinstance(name, str) and re.fullmatch(MODEL_NAME, name) and not is_model_name(name):
            told = joined(": ", (".".join(place), unknown_model(name)))
            line = lines.of(place)
            yield _("line {line}: {problem}").format(line=line, problem=told) if line else told
    own = _at(raw, ("name",))
    if isinstance(own, str) and own != path.stem:
        yield _("name: must be the name of the file (“{stem}”), not “{name}”").format(
            stem=path.stem, name=shown(own)
        )


def _at(raw: Any, place: Iterable[str]) -> Any:
    """Return what stands at a path of keys; None if nothing does."""
    for key in place:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return raw


def _line_of(problem: str) -> int:
    return (problem.values.get("line") or 0) if isinstance(problem, Text) else 0


def read_yaml(path: Path, *, headline: str) -> Any:
    """Read a YAML file.

    Args:
        path: The file.
        headline: First line of the error message.

    Raises:
        InvalidConfigurationError: The file cannot be read or is not YAML.
    """
    return _read(path, headline=headline)[0]


def _read(path: Path, *, headline: str) -> tuple[Any, Lines]:
    """Read a YAML file, with the lines of its keys. Same errors as `read_yaml`."""
    lines = Lines()

    def prepare(root: yaml.Node) -> None:
        refuse_duplicate_keys(root)
        lines.root = root

    try:
        return load_yaml(path.read_text(encoding="utf-8"), prepare=prepare), lines
    except (OSError, UnicodeDecodeError) as error:
        problem = unreadable(path, error)
        raise InvalidConfigurationError(headline, [problem]) from error
    except DuplicateKeyError as error:
        problem = _("the key {key} is repeated (line {line})").format(
            key=shown(error.key), line=error.line
        )
        raise InvalidConfigurationError(headline, [problem]) from error
    except yaml.MarkedYAMLError as error:
        raise InvalidConfigurationError(headline, [problem_of(error)]) from error
    except yaml.YAMLError as error:
        raise InvalidConfigurationError(
            headline, [_("a value does not fit its tag, is too long or too deep")]
        ) from error


def _files(folders: Iterable[Path], problems: list[str]) -> list[Path]:
    files: list[Path] = []
    for folder in folders:
        if folder.is_dir():
            inside = folder.resolve()
            for path in sorted(folder.iterdir()):
                if path.suffix not in SUFFIXES:
                    continue
                # Errors quote a file's keys, so a link must not lead to a file of somebody else.
                if path.resolve().is_relative_to(inside):
                    files.append(path)
                else:
                    problems.append(
                        _(
                            "{path}: is a link that leads out of the folder of configurations; "
                            "copy the file into it"
                        ).format(path=path)
                    )
        else:
            problems.append(
                _(
                    "{path}: the folder of configurations does not exist (RAG_CONFIGURATIONS)"
                ).format(path=folder)
            )
    return files
