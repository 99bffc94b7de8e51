"""Text recognition on pictures of pages, by the program `tesseract` if it is installed.

Only pages without text are recognised, and only if a reader is given a recogniser.
"""

import csv
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO, StringIO
from typing import Protocol

from PIL.Image import Image

from rag_resources.core.errors import RagError
from rag_resources.languages.messages import _

TIMEOUT_S = 120.0
"""A page takes one to two seconds of a processor."""

_ONE_THREAD = {"OMP_THREAD_LIMIT": "1"}
"""One thread: documents are read in parallel, and four threads are ten times slower when busy."""
_VERSION_TIMEOUT_S = 10.0

_MIN_CONFIDENCE = 20.0
"""Lowest confidence of a word, of 100; words below it are specks and drawings."""


@dataclass(frozen=True, slots=True)
class RecognisedWord:
    """A word on a picture, with its box in pixels from the upper left corner."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    line: tuple[int, ...]

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom."""
        return self.left, self.top, self.right, self.bottom


class RecognitionError(RagError):
    """A page could not be recognised."""


class Recogniser(Protocol):
    """Finds words on a picture.

    Attributes:
        identity: Identifies the program and its settings; pages recognised by another are stale.
    """

    identity: str

    def words(self, picture: Image) -> Sequence[RecognisedWord]:
        """Return the words of a picture in reading order.

        Raises:
            RecognitionError: The picture cannot be recognised.
        """
        ...


@dataclass(frozen=True, slots=True)
class Tesseract:
    """The program `tesseract`.

    Attributes:
        program: Its path.
        languages: As in `spa` or `spa+cat`; their data must be installed.
        timeout_s: Longest time for one page.
    """

    program: str
    languages: str = "spa"
    timeout_s: float = TIMEOUT_S

    @classmethod
    def installed(cls, languages: str = "spa") -> "Tesseract | None":
        """Return the installed program; None if there is none."""
        program = shutil.which("tesseract")
        return cls(program, languages) if program else None

    @property
    def identity(self) -> str:
        """The program's own version, and languages."""
        return f"{_version(self.program)} {self.languages}"

    def words(self, picture: Image) -> list[RecognisedWord]:
        """Return the words of a picture in reading order.

        Raises:
            RecognitionError: The program failed, or took too long.
        """
        png = BytesIO()
        picture.save(png, format="PNG")
        command = [self.program, "stdin", "stdout", "-l", self.languages, "tsv"]
        try:
            done = subprocess.run(  # noqa: S603 - an argument list, no shell interprets it
                command,
                input=png.getvalue(),
                capture_output=True,
                check=True,
                timeout=self.timeout_s,
                env={**os.environ, **_ONE_THREAD},
            )
        except subprocess.TimeoutExpired as error:
            raise RecognitionError(
                _(
                    "The recognition of the text (OCR) of a page took more than {seconds:g} s."
                ).format(seconds=self.timeout_s)
            ) from error
        except (OSError, subprocess.CalledProcessError) as error:
            raise RecognitionError(
                _(
                    "The recognition of the text (OCR) of a page failed. Check that “tesseract” "
                    "works and has the data of the language “{languages}”."
                ).format(languages=self.languages)
            ) from error
        return _words(done.stdout.decode("utf-8", "replace"))


@cache
def _version(program: str) -> str:
    """Return the first line of the program's version, such as `tesseract 5.3.0`."""
    try:
        said = subprocess.run(  # noqa: S603 - an argument list, no shell interprets it
            [program, "--version"], capture_output=True, check=True, timeout=_VERSION_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError):
        return "tesseract"
    return said.stdout.decode("utf-8", "replace").partition("\n")[0].strip() or "tesseract"


def _words(table: str) -> list[RecognisedWord]:
    """Read tesseract's table: a row for each word, with its box and confidence."""
    words = []
    for row in csv.DictReader(StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE):
        text = (row.get("text") or "").strip()
        if not text or float(row["conf"]) < _MIN_CONFIDENCE:
            continue
        left, top = float(row["left"]), float(row["top"])
        line = tuple(int(row[name]) for name in ("block_num", "par_num", "line_num"))
        right, bottom = left + float(row["width"]), top + float(row["height"])
        words.append(RecognisedWord(text, left, top, right, bottom, line))
    return words
