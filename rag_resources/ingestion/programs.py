"""Fields of notes as programs write them without front matter: Joplin, Logseq, Notion.

Front matter, which Obsidian and Joplin's Markdown export write, is read by `markdown`.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rag_resources.ingestion.records import readable_dates

_JOPLIN = re.compile(
    r"(?P<note>(?:.*\n\n)?)(?P<fields>(?:[a-z_]+:[^\n]*\n)+type_: (?P<type>\d+))\s*\Z", re.DOTALL
)
_JOPLIN_NAME = re.compile(r"[0-9a-f]{32}\.md")
_JOPLIN_NOTE, _JOPLIN_TAGGED = "1", "6"
_JOPLIN_NAMED = {"2", "5"}
"""Types of Joplin's items: notebooks and tags have names, and 6 says which note has which tag."""
_NOTION_NAME = re.compile(r".* [0-9a-f]{32}\.md")
_NOTION = re.compile(
    r"# (?P<title>[^\n]+)\n\n(?P<fields>(?:[^\n:]{1,60}: [^\n]*(?:\n|\Z))+)(?=\n|\Z)"
)
_LOGSEQ = re.compile(r"\s*(?P<fields>(?:[\w/-]+:: *[^\n]*(?:\n|\Z))+)")


def exported(text: str, path: Path) -> tuple[Mapping[str, Any], str] | None:
    """Return the fields and the content of a file of Joplin, Logseq or Notion.

    Returns:
        None if the file is of neither; blank content for a file of Joplin that is no note.
    """
    if _JOPLIN_NAME.fullmatch(path.name) and (item := _joplin_item(text)):
        kind, title, content, fields = item
        if kind != _JOPLIN_NOTE:
            return {}, ""
        names, tagged = _joplin_labels(path.parent, path.parent.stat().st_mtime_ns)
        own = {
            "id": fields["id"],
            "title": title,
            "created_at": fields.get("user_created_time") or fields.get("created_time"),
            "tags": [names[tag] for tag in tagged.get(fields["id"], ()) if tag in names],
            "url": fields.get("source_url"),
            "folder": names.get(fields.get("parent_id", "")),
        }
        return {name: value for name, value in own.items() if value}, content
    if _NOTION_NAME.fullmatch(path.name) and (page := _NOTION.match(text)):
        told = (line.partition(": ") for line in page["fields"].splitlines())
        fields = {name: value.strip(" @") for name, _, value in told if value.strip()}
        # Notion shows its properties in the page.
        return {"title": page["title"], **readable_dates(fields)}, text
    if properties := _LOGSEQ.match(text):
        lines = (line.partition("::") for line in properties["fields"].splitlines())
        fields = {name: value.strip() for name, _, value in lines if value.strip()}
        if not fields.keys() <= {"id", "collapsed"}:
            return fields, text[properties.end() :]
    return None


def _joplin_item(text: str) -> tuple[str, str, str, dict[str, str]] | None:
    match = _JOPLIN.fullmatch(text)
    if match is None:
        return None
    lines = (line.partition(":") for line in match["fields"].splitlines())
    title, _, content = match["note"].partition("\n")
    return (
        match["type"],
        title.strip(),
        content.strip("\n"),
        {name: value.strip() for name, _, value in lines},
    )


@lru_cache(maxsize=4)
def _joplin_labels(folder: Path, _changed: int) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the names of notebooks and tags by id, and the tags of each note."""
    names: dict[str, str] = {}
    tagged: dict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.iterdir()):
        if not _JOPLIN_NAME.fullmatch(path.name) or not path.is_file():
            continue
        item = _joplin_item(path.read_text("utf-8", errors="replace"))
        if item and item[0] in _JOPLIN_NAMED:
            names[item[3]["id"]] = item[1]
        elif item and item[0] == _JOPLIN_TAGGED:
            tagged[item[3].get("note_id", "")].append(item[3].get("tag_id", ""))
    return names, tagged
