"""Reads the named retrieval configurations of a folder. What one is, is `core.configuration`."""

from collections.abc import Iterable
from pathlib import Path

import yaml

from rag_resources.core.configuration import NamedConfiguration, parse_configuration
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.messages import Message

DEFAULT_CONFIGURATION = "hybrid_weighted"
"""What serves before the first promotion."""

BASELINE_CONFIGURATION = "baseline"
"""Whole notes: what a migration starts from, and what it is taken back to."""

SUFFIXES = frozenset({".yaml", ".yml"})


def load_configurations(folders: Iterable[Path]) -> dict[str, NamedConfiguration]:
    """Read every YAML file of some folders, in order of names.

    Raises:
        InvalidConfigurationError: A file is not valid; every problem of every file is named by its
            path. A folder that is not there counts as a problem too.
    """
    found: dict[str, NamedConfiguration] = {}
    origins: dict[str, Path] = {}
    problems: list[str] = []
    for path in _files(folders, problems):
        try:
            configuration = load_configuration(path)
        except InvalidConfigurationError as error:
            problems.extend(f"{path}: {problem}" for problem in error.problems)
            continue
        if configuration.name in found:
            problems.append(
                Message.CONFIGURATION_DUPLICATE.format(
                    name=configuration.name, first=origins[configuration.name], second=path
                )
            )
        found[configuration.name] = configuration
        origins[configuration.name] = path
    if problems:
        raise InvalidConfigurationError(Message.INVALID_CONFIGURATIONS, problems)
    return found


def load_configuration(path: Path) -> NamedConfiguration:
    """Read one file, whose name is the configuration's.

    Raises:
        InvalidConfigurationError: With every problem named.
    """
    origin = Message.INVALID_CONFIGURATION.format(origin=path)
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise InvalidConfigurationError(
            origin, [Message.CONFIGURATION_YAML.format(reason=reason)]
        ) from error
    configuration = parse_configuration(raw, origin=str(path))
    if configuration.name != path.stem:
        problem = Message.CONFIGURATION_NAME.format(stem=path.stem, name=configuration.name)
        raise InvalidConfigurationError(origin, [problem])
    return configuration


def _files(folders: Iterable[Path], problems: list[str]) -> list[Path]:
    files: list[Path] = []
    for folder in folders:
        if folder.is_dir():
            files.extend(path for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES)
        else:
            problems.append(Message.CONFIGURATION_FOLDER.format(path=folder))
    return files
