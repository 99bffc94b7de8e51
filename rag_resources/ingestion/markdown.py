"""Reads Markdown and plain text files, with or without YAML front matter: one note per file.

The meaning of the front matter's fields is decided in `records`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from rag_resources.core.encodings import decoded
from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.timestamps import EXPIRES_AT_FIELDS
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.core.yaml_text import load_yaml
from rag_resources.ingestion.programs import exported
from rag_resources.ingestion.records import (
    ALIASES_FIELDS,
    CREATED_AT_FIELDS,
    ID_FIELDS,
    KNOWN_FIELDS,
    TAGS_FIELDS,
    TITLE_FIELDS,
    build_note,
    folded_name,
    title_of_file,
)
from rag_resources.ingestion.source_file import (
    MAX_NOTE_BYTES,
    InvalidRecordError,
    SourceFile,
    too_large,
)
from rag_resources.languages.messages import _

MAX_FRONT_MATTER_CHARS = 64 * 1024

_OPENING = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"^---[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
# YAML 1.1 would read `id: 012` as ten, `title: No` as false and `title: 10:30` as 630.
_VERBATIM_FIELDS = {
    folded_name(name)
    for fields in (
        ID_FIELDS,
        TITLE_FIELDS,
        TAGS_FIELDS,
        ALIASES_FIELDS,
        CREATED_AT_FIELDS,
        EXPIRES_AT_FIELDS,
    )
    for name in fields
}
_NULL_TAG = "tag:yaml.org,2002:null"
_TEXT_TAG = "tag:yaml.org,2002:str"


def read_markdown(file: SourceFile) -> Iterator[NoteRecord | RejectedRecord]:
    """Yield the only note of a file.

    The content is the exact text after the front matter, without the file's last line end.
    `python-frontmatter` is not used: it strips the content, and ignores front matter that is not a
    mapping.
    """
    text = ""
    try:
        text = _read(file.path)
        own = exported(text, file.path)
        fields, content = own or split_front_matter(text)
        if own and not content.strip() and not fields:
            return
        yield build_note(
            fields,
            file=file,
            location=file.name,
            content=_without_last_line_end(content),
            default_id=file.name_without_suffix,
            default_title=title_of_file(file.name_without_suffix),
        )
    except InvalidRecordError as error:
        line = _field_line(text, error.context.get("field"))
        yield error.rejected(file.at_line(line) if line else file.name)


def _read(path: Path) -> str:
    """Return the text of a file, without NUL characters.

    Raises:
        InvalidRecordError: It is too large, or not text.
    """
    with path.open("rb") as file:
        raw = file.read(MAX_NOTE_BYTES + 1)
    if len(raw) > MAX_NOTE_BYTES:
        raise too_large()
    try:
        return raw.decode("utf-8-sig").replace("\0", "")
    except UnicodeDecodeError:
        pass
    try:
        return decoded(raw, path.suffix.removeprefix(".").upper())
    except InvalidSourceError as error:
        raise InvalidRecordError(error.message) from error


def split_front_matter(text: str) -> tuple[Mapping[Any, Any], str]:
    """Split a text into the fields of its front matter and its content.

    Front matter starts with `---` on the first line and ends at the next such line. Otherwise the
    whole text is content.

    Raises:
        InvalidRecordError: The front matter is not YAML, not a mapping, or too long.
    """
    front_matter, content = _split(text)
    if len(front_matter) > MAX_FRONT_MATTER_CHARS:
        raise InvalidRecordError(
            _("The front matter between “---” has more than {maximum} characters.").format(
                maximum=MAX_FRONT_MATTER_CHARS
            )
        )
    return _load_fields(front_matter), content


def opens_front_matter(content: str) -> bool:
    """Whether a note's content begins with front matter that is not closed, by a known field."""
    opening = _OPENING.match(content)
    name, colon, _ = content[opening.end() :].partition(":") if opening else ("", "", "")
    return bool(colon) and name.strip() in KNOWN_FIELDS


def _split(text: str) -> tuple[str, str]:
    """Return the text between the `---`, empty without them, and the content."""
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return "", text
    return text[opening.end() : closing.start()], text[closing.end() :]


def _field_line(text: str, field: str | None) -> int | None:
    """Return the line of the file where a field of front matter stands, if it does."""
    if field is None or not _split(text)[0]:
        return None
    names = (line.partition(":")[0].strip(" '\"\r") for line in text.splitlines())
    return next((number for number, name in enumerate(names, start=1) if name == field), None)


def _load_fields(front_matter: str) -> Mapping[Any, Any]:
    try:
        fields = load_yaml(front_matter, prepare=_keep_spellings)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = (
            mark.line if mark else front_matter.count("\n", 0, getattr(error, "position", 0))
        ) + 2
        raise InvalidRecordError(
            _("The front matter is not valid YAML (line {line}).").format(line=line), line=line
        ) from error
    if fields is None:
        return {}
    if not isinstance(fields, Mapping):
        raise InvalidRecordError(
            _("The front matter between “---” must have lines of the form “field: value”.")
        )
    return fields


def _keep_spellings(root: yaml.Node) -> None:
    """Replace the values of verbatim fields by the text that was written."""
    if isinstance(root, yaml.MappingNode):
        for key, value in root.value:
            if isinstance(key, yaml.ScalarNode) and folded_name(key.value) in _VERBATIM_FIELDS:
                _keep_spelling(value)


def _keep_spelling(node: yaml.Node) -> None:
    """Replace a scalar, or the scalars of a list, by the text that was written."""
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    for scalar in nodes:
        if isinstance(scalar, yaml.ScalarNode) and scalar.tag != _NULL_TAG:
            scalar.tag = _TEXT_TAG


def _without_last_line_end(content: str) -> str:
    return content.removesuffix("\n").removesuffix("\r") if content.endswith("\n") else content
