"""Checks that every embedder's vectors have the right shape and are finite and L2-normalised."""

import numpy as np
import numpy.typing as npt

from rag_resources.core.errors import InvalidEmbeddingError
from rag_resources.languages.messages import _
from rag_resources.providers.protocols import Vectors

# Under this norm the direction of a float32 vector is rounding noise.
_SMALLEST_NORM = 1e-12


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
    try:
        rows: npt.NDArray[np.float64] = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise _invalid(model, "vectores de longitudes distintas o no numéricos") from error
    if n_texts == 0 and rows.size == 0:
        return np.empty((0, dimension or 0), dtype=np.float32)
    if rows.ndim != 2 or rows.shape[0] != n_texts:
        found = rows.shape[0] if rows.ndim else 0
        raise _invalid(model, f"se esperaban {n_texts} vectores y hay {found}", shape=rows.shape)
    if rows.shape[1] == 0 or rows.shape[1] != (dimension or rows.shape[1]):
        problem = f"dimensión {rows.shape[1]} en lugar de {dimension}"
        raise _invalid(model, problem, shape=rows.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(rows, axis=1)
    if not np.isfinite(norms).all():
        raise _invalid(model, "valores no finitos", rows=np.flatnonzero(~np.isfinite(norms)))
    if (norms < _SMALLEST_NORM).any():
        raise _invalid(model, "un vector nulo", rows=np.flatnonzero(norms < _SMALLEST_NORM))
    rows /= norms[:, None]
    return rows.astype(np.float32)


def _invalid(model: str, problem: str, **context: object) -> InvalidEmbeddingError:
    message = _("The model {model} returned invalid vectors: {problem}").format(
        model=model, problem=problem
    )
    return InvalidEmbeddingError(message, model=model, problem=problem, **context)
