"""The catalogue of messages."""

import re
from pathlib import Path

from rag_resources.core.messages import Message

ROOT = Path(__file__).parents[2]


def test_every_message_is_used() -> None:
    """By its name, in some module or template."""
    files = (
        path
        for package in ("rag_resources", "rag_assets")
        for suffix in ("py", "html")
        for path in (ROOT / package).rglob(f"*.{suffix}")
        if path.name != "messages.py"
    )
    words = {word for path in files for word in re.findall(r"\w+", path.read_text("utf-8"))}
    names = [name for name in vars(Message) if name.isupper()]
    assert names
    assert [name for name in names if name not in words] == []
