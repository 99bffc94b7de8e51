"""What every contender is given: notes, the passages they are cut into, questions, vectors.

Made once by `workloads`, kept as files, read by each contender in a process of its own; so nothing
here imports the product, which the peers' interpreter does not have.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

Vectors = np.ndarray[Any, np.dtype[np.float32]]

_CONTENT = "workload.json"
_KEYS = "keys.npy"
_VECTORS = "vectors.npy"
_KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class BenchNote:
    """A note; `created_at` in ISO 8601."""

    external_id: str
    title: str
    content: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Passage:
    """What a peer indexes.

    Attributes:
        passage_id: The same in every run.
        note: External id of its note.
        text: As our chunker cuts it.
    """

    passage_id: str
    note: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the external ids of the notes that answer it; none if nobody judged."""

    text: str
    notes: tuple[str, ...] = ()


class LookedUpVectors:
    """The vectors of texts, made beforehand; asking for another text is an error.

    Args:
        keys: `(n_texts, 16)` uint8, of `vector_key`.
        vectors: `(n_texts, dimension)` float32, rows L2-normalised.
    """

    def __init__(self, keys: np.ndarray[Any, np.dtype[np.uint8]], vectors: Vectors) -> None:
        self._rows = {key.tobytes(): row for row, key in enumerate(keys)}
        self._vectors = vectors
        self.dimension = int(vectors.shape[1])

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each passage.

        Raises:
            KeyError: One is not known.
        """
        return self._of(texts, question=False)

    def questions(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each question.

        Raises:
            KeyError: One is not known.
        """
        return self._of(texts, question=True)

    def _of(self, texts: Sequence[str], *, question: bool) -> Vectors:
        rows = [self._rows.get(vector_key(text, question=question)) for text in texts]
        if None in rows:
            kind = "question" if question else "passage"
            raise KeyError(f"a {kind} of {len(texts[rows.index(None)])} characters has no vector")
        found: Vectors = self._vectors[rows]
        return found


@dataclass(frozen=True, slots=True)
class Workload:
    """One corpus with its questions.

    Attributes:
        model: The fields of the product's `ModelInfo`.
    """

    model: dict[str, Any]
    notes: list[BenchNote]
    passages: list[Passage]
    questions: list[Question]
    vectors: LookedUpVectors


def vector_key(text: str, *, question: bool) -> bytes:
    """Identify a text; models embed questions and passages differently."""
    kind = b"question" if question else b"passage"
    return blake2b(text.encode(), digest_size=_KEY_BYTES, person=kind).digest()


def save(
    folder: Path,
    model: dict[str, Any],
    notes: Sequence[BenchNote],
    passages: Sequence[Passage],
    questions: Sequence[Question],
    vectors: dict[bytes, Vectors],
) -> None:
    """Write a workload; vectors by `vector_key`."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "model": model,
        "notes": [asdict(note) for note in notes],
        "passages": [asdict(passage) for passage in passages],
        "questions": [asdict(question) for question in questions],
    }
    (folder / _CONTENT).write_text(json.dumps(content), encoding="utf-8")
    keys = np.frombuffer(b"".join(vectors), dtype=np.uint8).reshape(-1, _KEY_BYTES)
    np.save(folder / _KEYS, keys)
    np.save(folder / _VECTORS, np.stack(list(vectors.values())).astype(np.float32))


def load(folder: Path) -> Workload:
    """Read a workload of `save`; its vectors stay in the file until they are used."""
    content = json.loads((folder / _CONTENT).read_text(encoding="utf-8"))
    vectors = np.load(folder / _VECTORS, mmap_mode="r")
    return Workload(
        model=content["model"],
        notes=[BenchNote(**note) for note in content["notes"]],
        passages=[Passage(**passage) for passage in content["passages"]],
        questions=[Question(item["text"], tuple(item["notes"])) for item in content["questions"]],
        vectors=LookedUpVectors(np.load(folder / _KEYS), vectors),
    )
