"""The named queries: mistakes that the SQL loader ignores silently."""

import re
from collections import Counter
from pathlib import Path

FILES = sorted((Path(__file__).parents[2] / "sql" / "queries").glob("*.sql"))


def test_no_name_stands_for_two_queries() -> None:
    """Of two queries with the same name, whatever they do, only the last is loaded."""
    names = Counter(
        name
        for path in FILES
        for name in re.findall(r"^-- name: (\w+)", path.read_text("utf-8"), re.MULTILINE)
    )
    assert names
    assert [name for name, times in names.items() if times > 1] == []


def test_every_query_is_used() -> None:
    """By its name, in some module."""
    root = Path(__file__).parents[2]
    source = "\n".join(
        path.read_text("utf-8")
        for package in ("rag_resources", "rag_assets")
        for path in (root / package).rglob("*.py")
    )
    words = set(re.findall(r"\w+", source))
    unused = [
        name
        for path in FILES
        for name in re.findall(r"^-- name: (\w+)", path.read_text("utf-8"), re.MULTILINE)
        if name not in words
    ]
    assert unused == []
