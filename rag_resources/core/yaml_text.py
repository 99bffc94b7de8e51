"""YAML to plain values, safely: nothing runs, nothing unfolds without end, one kind of error.

Which fields there may be is for who asks: configurations, experiments, front matter.
"""

from collections.abc import Callable
from typing import Any

import yaml

from rag_resources.core.messages import Message

MAX_UNFOLDED_CHARS = 1_000_000
"""Of all scalars, those of an alias once for each time that it is used."""


class _Loader(yaml.SafeLoader):
    """Safe YAML in which a date that does not exist, such as 2024-02-30, is a text."""


def _construct_timestamp(loader: _Loader, node: yaml.ScalarNode) -> Any:
    try:
        return loader.construct_yaml_timestamp(node)
    except (ValueError, OverflowError, AttributeError):
        return node.value


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _construct_timestamp)


def load_yaml(text: str, *, prepare: Callable[[yaml.Node], None] = lambda _: None) -> Any:
    """Read a text that holds one YAML document.

    Args:
        text: None is what an empty one means.
        prepare: Called with the document's nodes before they become values.

    Raises:
        yaml.YAMLError: It is none, or a value has no place in Python: a tag that it does not fit
            (`!!int x`), a number of thousands of digits, a thousand levels, aliases of aliases that
            unfold to more than `MAX_UNFOLDED_CHARS`.
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
        raise yaml.YAMLError(Message.YAML_LIMITS) from error


def _unfolded_chars(node: yaml.Node, known: dict[int, int]) -> int:
    """Count the characters below a node, and a node without any as one.

    Raises:
        yaml.MarkedYAMLError: They are too many, or it stands inside itself.
    """
    # What merge keys copy is counted too, where it is copied to.
    if id(node) not in known:
        known[id(node)] = MAX_UNFOLDED_CHARS + 1  # While it is not counted: it is inside itself.
        if isinstance(node, yaml.MappingNode):
            inside = [part for pair in node.value for part in pair]
        else:
            inside = node.value if isinstance(node, yaml.SequenceNode) else []
        own = len(node.value) if isinstance(node, yaml.ScalarNode) else 0
        known[id(node)] = 1 + own + sum(_unfolded_chars(part, known) for part in inside)
    if known[id(node)] > MAX_UNFOLDED_CHARS:
        raise yaml.MarkedYAMLError(problem=Message.YAML_LIMITS, problem_mark=node.start_mark)
    return known[id(node)]
