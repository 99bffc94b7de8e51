"""Decodes the bytes of text files whose encoding nobody states."""

import codecs

from charset_normalizer import from_bytes

from rag_resources.core.errors import InvalidSourceError
from rag_resources.languages.messages import _

MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SAMPLE_BYTES = 256 * 1024
_WESTERN = "cp1252"
_LIKELY = [_WESTERN, "mac_roman", "cp850", "utf_16_le", "utf_16_be"]


def decoded(content: bytes, kind: str) -> str:
    """Return a text: by its byte order mark, as UTF-8, else in the likeliest encoding of Spanish.

    Raises:
        InvalidSourceError: It is not text.
    """
    for mark, encoding in MARKS.items():
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        text = content.decode(likely_encoding(content), "replace")
        if "\0" in text:
            raise _not_text(kind) from error
        return text
    if "\0" in text:
        raise _not_text(kind)
    return text


def likely_encoding(content: bytes) -> str:
    """Return the likeliest encoding of Spanish for bytes that are not UTF-8."""
    best = from_bytes(content[:_SAMPLE_BYTES], cp_isolation=_LIKELY).best()
    return best.encoding if best else _WESTERN


def _not_text(kind: str) -> InvalidSourceError:
    return InvalidSourceError(
        _(
            "It cannot be read as {kind}: it is damaged or of another type. Open it with its "
            "program and save it again, or ask for another copy."
        ).format(kind=kind, reason="NUL")
    )
