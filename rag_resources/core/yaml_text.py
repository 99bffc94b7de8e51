"""Reads YAML safely as plain values: no code runs, aliases cannot explode, one type of error.

Which fields are allowed is up to the caller: configurations, experiments, front matter.
"""

from collections.abc import Callable, Sequence
from typing import Any

import yaml

from rag_resources.languages.messages import Text, _

MAX_UNFOLDED_CHARS = 1_000_000
"""Most characters of all scalars together; those of an alias count each time it is used."""


MERGE_TAG = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """A safe loader that reads a date that does not exist, such as 2024-02-30, as a text."""


def _construct_timestamp(loader: _Loader, node: yaml.ScalarNode) -> Any:
    try:
        return loader.construct_yaml_timestamp(node)
    except (ValueError, OverflowError, AttributeError):
        return node.value


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _construct_timestamp)


def load_yaml(text: str, *, prepare: Callable[[yaml.Node], None] = lambda _: None) -> Any:
    """Read a text that holds one YAML document.

    Args:
        text: The document; an empty one gives None.
        prepare: Called with the document's nodes before they become values.

    Raises:
        yaml.YAMLError: It is not valid YAML, or a value cannot be represented: it does not fit its
            tag (`!!int x`), it is a number of thousands of digits, it is nested a thousand levels
            deep, or its aliases expand to more than `MAX_UNFOLDED_CHARS`.
    """
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return None
        _unfolded_chars(root, {})
        prepare(root)
        return loader.construct_document(root)
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        raise yaml.YAMLError(_("a value does not fit its tag, is too long or too deep")) from error


class DuplicateKeyError(yaml.MarkedYAMLError):
    """A key stands twice in one mapping.

    Attributes:
        key: As it is written.
        line: Of its second place, from 1.
    """

    def __init__(self, key: str, mark: yaml.Mark) -> None:
        super().__init__(problem=key, problem_mark=mark)
        self.key = key
        self.line = mark.line + 1


def refuse_duplicate_keys(node: yaml.Node) -> None:
    """Check that no key stands twice in one mapping, where the last one would win unseen.

    For `prepare` of `load_yaml`.

    Raises:
        DuplicateKeyError: At the first one.
    """
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            refuse_duplicate_keys(item)
    elif isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen and key.tag != MERGE_TAG:
                    raise DuplicateKeyError(key.value, key.start_mark)
                seen.add(key.value)
            refuse_duplicate_keys(value)


def problem_of(error: yaml.MarkedYAMLError) -> Text:
    """Say where a text stops being YAML."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return _("is not valid {kind} (line {line}, column {column})").format(
        kind="YAML", line=line, column=column
    )


class Lines:
    """The lines on which the keys of a YAML document stand.

    Attributes:
        root: The document's root; None if it is empty.
    """

    def __init__(self, root: yaml.Node | None = None) -> None:
        self.root = root

    def of(self, path: Sequence[int | str]) -> int | None:
        """Return the line, from 1, of a path of keys and positions; None if there is no document.

        Of what is not there it is the line of what it should be in.
        """
        node, line = self.root, self.root.start_mark.line + 1 if self.root else None
        for step in path:
            inside = _inside(node, step)
            if inside is None:
                continue  # A missing key, or the name of a choice.
            key, node = inside
            line = key.start_mark.line + 1
        return line


def _inside(node: yaml.Node | None, step: int | str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the key and the value at a step; of a list the value is both."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None


def _unfolded_chars(node: yaml.Node, known: dict[int, int]) -> int:
    """Count the characters below a node; a node without any counts as one.

    Raises:
        yaml.MarkedYAMLError: There are too many, or the node contains itself.
    """
    # Values copied by merge keys are counted where they are copied to.
    if id(node) not in known:
        known[id(node)] = MAX_UNFOLDED_CHARS + 1  # Found again while counted: it contains itself.
        if isinstance(node, yaml.MappingNode):
            inside = [part for pair in node.value for part in pair]
        else:
            inside = node.value if isinstance(node, yaml.SequenceNode) else []
        own = len(node.value) if isinstance(node, yaml.ScalarNode) else 0
        known[id(node)] = 1 + own + sum(_unfolded_chars(part, known) for part in inside)
    if known[id(node)] > MAX_UNFOLDED_CHARS:
        raise yaml.MarkedYAMLError(
            problem=_("a value does not fit its tag, is too long or too deep"),
            problem_mark=node.start_mark,
        )
    return known[id(node)]
