"""Preparation of texts that all providers share. Tokenisation belongs to each model."""

from collections.abc import Sequence


def clean(text: str) -> str:
    """Make a text safe to encode: NUL becomes a space, a lone surrogate becomes U+FFFD.

    Args:
        text: Any string, of any length.

    Returns:
        The same text if it was already safe; always encodable as UTF-8.
    """
    # C tokenisers stop at NUL, which would silently drop the rest of the text.
    text = text.replace("\0", " ")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def windows_of_chars(text: str, max_chars: int) -> list[str]:
    """Cut a text into consecutive windows, at a space where there is one.

    Args:
        text: The text to cut.
        max_chars: Longest window, >= 2.

    Returns:
        Windows of 1 to `max_chars` characters whose concatenation is `text`; `[""]` for `""`.
    """
    if len(text) <= max_chars:
        return [text]
    windows: list[str] = []
    start = 0
    while len(text) - start > max_chars:
        # A window is never cut to less than half for a space, so their number stays bounded.
        space = text.rfind(" ", start + max_chars // 2, start + max_chars)
        end = space + 1 if space >= 0 else start + max_chars
        windows.append(text[start:end])
        start = end
    windows.append(text[start:])
    return windows


def batches(texts: Sequence[str], size: int) -> list[Sequence[str]]:
    """Split texts into consecutive batches of at most `size` (>= 1), in order."""
    return [texts[start : start + size] for start in range(0, len(texts), size)]


def as_data(text: str) -> str:
    """Return a text that cannot close the prompt element that it is placed in."""
    return text.replace("<", "‹").replace(">", "›")
