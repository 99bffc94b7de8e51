"""Masks what differs from run to run, stores snapshots, and says what changed in them."""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"

_LEAST_EPOCH = 1_600_000_000
_MOST_ITEMS = 3
_MOST_KEYS = 10
_MOST_CHARS = 160
_MOST_LINES = 60
_VOLATILE = re.compile(
    r"(_ms|Ms|latency|latencyP..|seconds|[vV]ersion|stages|uptime|p50|p95)$"
    r"|(Revision|_revision|PerMinute|isWorking)$"
    r"|^(address|port|pid|key|expiresAt|report|findings|dataDir|path|sizeBytes)$"
    r"|^(missing|explanations|messages|notice)$"
)
"""Names of times, addresses, and of sentences, which may be worded anew."""
_RANDOM_ID = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b"
)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:?\d\d)?")


def masked(value: Any, name: str = "") -> Any:
    """Return JSON without what differs from run to run, long lists and texts shortened."""
    if _VOLATILE.search(name) and value is not None:
        return f"<{type(value).__name__}>"
    if isinstance(value, dict):
        # So many parts of one kind are named by the corpus: tags, months.
        is_list = len(value) > _MOST_KEYS and all(isinstance(it, dict) for it in value.values())
        kept = sorted(value)[:_MOST_ITEMS] if is_list else value
        more = {"and more": len(value) - len(kept)} if len(kept) < len(value) else {}
        return {_text(key): masked(value[key], key) for key in kept} | more
    if isinstance(value, list):
        left_out = len(value) - _MOST_ITEMS
        more_items = [f"and {left_out} more"] if left_out > 0 else []
        return [masked(item, name) for item in value[:_MOST_ITEMS]] + more_items
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, int) and value > _LEAST_EPOCH:
        return "<moment>"
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    text = _MOMENT.sub("<moment>", _RANDOM_ID.sub("<id>", text))
    if len(text) <= _MOST_CHARS:
        return text
    digest = sha256(text.encode()).hexdigest()[:8]
    return f"{text[:_MOST_CHARS]}… ({len(text)} characters, {digest})"


def stored(surface: str) -> Any:
    """Return a stored snapshot; empty if there is none."""
    path = DATA / f"{surface}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def store(surface: str, value: Any) -> None:
    """Write a snapshot."""
    text = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
    # A list of numbers or short names reads better in one line.
    text = re.sub(r"\[[^][{}]*\]", lambda each: re.sub(r"\n *", "", each[0]), text)
    (DATA / f"{surface}.json").write_text(text + "\n", "utf-8")


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each value that is gone, new or another."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            inner = f"{path} › {key}" if path else key
            if key not in after:
                yield f"gone:    {inner}"
            elif key not in before:
                yield f"new:     {inner} = {_short(after[key])}"
            else:
                yield from differences(before[key], after[key], inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, f"{path}[{number}]")
    elif before != after:
        yield f"changed: {path}: {_short(before)} → {_short(after)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"


def told(surface: str, lines: list[str]) -> str:
    """Return what changed in a surface, for people."""
    head = f"{surface}: {f'{len(lines)} differences' if lines else 'as before'}"
    more = [f"and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else []
    return "\n  ".join([head, *lines[:_MOST_LINES], *more]) + "\n"
