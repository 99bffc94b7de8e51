"""Reads the pages of a file in a child process with limits of time, memory, pages and output.

The child's side is `documents.child`. Rows of pages belong in `store.documents`.
"""

import base64
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, BinaryIO, cast

from rag_resources.core.documents import Page, PageFailure
from rag_resources.core.errors import ExtractionError, InvalidParameterError
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.core.page_json import item_from_json
from rag_resources.core.places import Box
from rag_resources.documents.child import BOXES, PICTURE, READ
from rag_resources.documents.media_types import PDF
from rag_resources.languages.messages import _, restored

OUTPUT_MB = 256
"""Most text, words and positions that a document may give."""
_CHILD = "rag_resources.documents.child"
_PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TESSDATA_PREFIX",
    "LD_LIBRARY_PATH",
    "COVERAGE_PROCESS_CONFIG",
    "COVERAGE_PROCESS_START",
)
"""The only variables that the child gets, because others may hold credentials."""
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_THREAD_LIMIT": "1"}
_END_S = 5.0
_POLL_S = 0.01
_READ_BYTES = 1 << 16
_LOOK = os.WEXITED | os.WNOHANG | os.WNOWAIT


def extract(
    file: BinaryIO, media_type: str, config: ExtractionConfig
) -> Iterator[Page | PageFailure]:
    """Yield the pages of a file in order, as the child process reads them.

    Args:
        file: A real file, open for reading; the child reads it through its descriptor.
        media_type: Decides the reader.
        config: The limits.

    Raises:
        ExtractionError: The rest of the file could not be read; the pages so far are good.
    """
    last = 0
    for message in _messages(READ, file, media_type, config):
        try:
            item = item_from_json(message)
        except InvalidParameterError as error:
            raise ExtractionError(error.message) from error
        if item.number <= last or item.number > config.pages:
            raise ExtractionError(
                _(
                    "It has more than {pages} pages; the others are not read. Raise "
                    "EXTRACTION__PAGES or split the file."
                ).format(pages=config.pages)
            )
        last = item.number
        yield item


def read_boxes(
    file: BinaryIO, boxes: Sequence[tuple[int, Box]], config: ExtractionConfig
) -> list[str | None]:
    """Return the text of a PDF file in each box; None where the page cannot be read.

    Args:
        file: As for `extract`.
        boxes: Each with the number of its page; those of a page together, for speed.
        config: The limits.

    Raises:
        ExtractionError: The file could not be read to the end.
    """
    requests = [[page, [box.left, box.top, box.right, box.bottom]] for page, box in boxes]
    messages = _messages(BOXES, file, PDF, config, requests=requests)
    texts = [message.get("text") for message in messages]
    return [text if isinstance(text, str) else None for text in texts]


def picture_of(file: BinaryIO, page: int, boxes: Sequence[Box], config: ExtractionConfig) -> bytes:
    """Return a page of a PDF file as PNG, with boxes drawn on it.

    Raises:
        ExtractionError: The page cannot be read.
    """
    edges = [[box.left, box.top, box.right, box.bottom] for box in boxes]
    messages = _messages(PICTURE, file, PDF, config, requests={"page": page, "boxes": edges})
    return b"".join(base64.b64decode(message["png"]) for message in messages)


def _messages(
    job: str, file: BinaryIO, media_type: str, config: ExtractionConfig, *, requests: Any = None
) -> Iterator[Any]:
    """Yield the child's messages until it reports its end.

    Raises:
        ExtractionError: The child did not reach its end.
    """
    end_at = time.monotonic() + config.timeout_s
    with _child(job, file, media_type, config, requests) as process:
        for line in _lines(process, config, end_at):
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                break
            if isinstance(message, Mapping) and "end" in message:
                return
            if isinstance(message, Mapping) and "error" in message:
                raise ExtractionError(restored(message["error"]))
            yield message
        raise ExtractionError(_why_it_ended(process, config))


def _lines(
    process: "subprocess.Popen[bytes]", config: ExtractionConfig, end_at: float
) -> Iterator[bytes]:
    """Yield the child's lines until it closes its output.

    Raises:
        ExtractionError: It takes too long, or sends too much.
    """
    buffer, received = bytearray(), 0
    with selectors.DefaultSelector() as selector:
        output = selector.register(cast("IO[bytes]", process.stdout), selectors.EVENT_READ).fd
        while True:
            if not selector.select(max(0.0, end_at - time.monotonic())):
                raise ExtractionError(_too_late(config))
            data = os.read(output, _READ_BYTES)
            received += len(data)
            if received > OUTPUT_MB * 1024**2:
                raise ExtractionError(
                    _("It gives more than {megabytes} MB of text. Split the file.").format(
                        megabytes=OUTPUT_MB
                    )
                )
            buffer += data
            if b"\n" in data:
                *lines, buffer = buffer.split(b"\n")
                yield from map(bytes, lines)
            if not data:
                return


def _too_late(config: ExtractionConfig) -> str:
    return _(
        "It could not be read within {seconds:g} seconds. Raise EXTRACTION__TIMEOUT_S or split "
        "the file."
    ).format(seconds=config.timeout_s)


@contextmanager
def _child(
    job: str, file: BinaryIO, media_type: str, config: ExtractionConfig, requests: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the child; it is gone at the end, whatever it does."""
    limits = {
        "memory_bytes": config.memory_mb * 1024**2,
        "cpu_s": int(config.timeout_s) + 1,
    }
    file.seek(0)
    asked = tempfile.TemporaryFile()  # noqa: SIM115 - closed below, with the child
    asked.write(json.dumps(requests).encode())
    asked.seek(0)
    limits["requests"] = asked.fileno()
    process = subprocess.Popen(  # noqa: S603 - our own program; the media type is one of ours
        # Isolated: a file of the working folder cannot take the place of a module.
        [sys.executable, "-I", "-m", _CHILD, job, media_type, json.dumps(limits)],
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=[asked.fileno()],
        env={name: os.environ[name] for name in _PASSED_ON if name in os.environ} | _ONE_THREAD,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        asked.close()
        # The whole session: a reader may have started a program of its own.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.stdout:
            process.stdout.close()
        process.wait(_END_S)


def _why_it_ended(process: "subprocess.Popen[bytes]", config: ExtractionConfig) -> str:
    """Return why the child ended; it stays unreaped, so that its id is not used again."""
    end_at = time.monotonic() + _END_S
    while (ended := os.waitid(os.P_PID, process.pid, _LOOK)) is None and time.monotonic() < end_at:
        time.sleep(_POLL_S)
    code = ended.si_status if ended else 0
    if ended and ended.si_code != os.CLD_EXITED and code == signal.SIGXCPU:
        return _too_late(config)
    return _(
        "The process that read it was interrupted (code {code}). The pages before are kept."
    ).format(code=code)
