"""What all providers do with texts before, and with vectors after their model."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_resources.core.errors import InvalidEmbeddingError
from rag_resources.core.types import Vectors
from rag_resources.languages.messages import _

# Under this norm the direction of a float32 vector is rounding noise.
_SMALLEST_NORM = 1e-12


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


def unit_vectors(
    values: npt.ArrayLike, *, n_texts: int, dimension: int | None, model: str
) -> Vectors:
    """Validate what a model returned and normalise it.

    Args:
        values: `(n_texts, dimension)` numbers.
        n_texts: How many texts were embedded.
        dimension: Expected dimension of a vector; `None` accepts any.
        model: Name of the model, for the error.

    Returns:
        `(n_texts, dimension)` float32, rows finite and L2-normalised; always a new array.

    Raises:
        InvalidEmbeddingError: The rows are ragged or not numbers, there are too few or too many,
            or a row has another dimension, is not finite, or is zero.
    """
    message = _("The model {model} returned invalid vectors.").format(model=model)
    try:
        rows: npt.NDArray[np.float64] = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidEmbeddingError(message, model=model) from error
    if n_texts == 0 and rows.size == 0:
        return np.empty((0, dimension or 0), dtype=np.float32)
    invalid = InvalidEmbeddingError(
        message, model=model, shape=rows.shape, expected=(n_texts, dimension)
    )
    if rows.ndim != 2 or len(rows) != n_texts or rows.shape[1] != (dimension or rows.shape[1]):
        raise invalid
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(rows, axis=1)
    if not np.isfinite(norms).all() or (norms < _SMALLEST_NORM).any():
        raise invalid
    rows /= norms[:, None]
    return rows.astype(np.float32)
