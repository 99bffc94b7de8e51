"""The process that reads one file. It is started by `documents.extraction`, and by nobody else.

A damaged or malicious file can only end this process: it has limits, no credentials, and can write
nothing but messages to its parent.
"""

import base64
import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any, BinaryIO

from rag_resources.core.errors import InvalidSourceError, RagError
from rag_resources.core.page_json import item_to_json
from rag_resources.core.places import Box
from rag_resources.documents.archives import damaged, too_deep
from rag_resources.documents.readers import reader_of
from rag_resources.languages.messages import _, to_stored

READ, BOXES, PICTURE = "read", "boxes", "picture"
"""The jobs."""
RECURSION = 1_000
_OPEN_FILES = 128
_FILE_BYTES = 256 * 1024**2
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Do a job on the file on stdin, and write its results to stdout as messages."""
    limits: Mapping[str, int] = json.loads(sys.argv[3])
    _limit_process(limits)
    # Output of libraries must not get among the messages.
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with pipe, os.fdopen(os.dup(0), "rb") as file:
        _send(pipe, _do(sys.argv[1], file, sys.argv[2], limits, pipe))


def _do(
    job: str, file: BinaryIO, media_type: str, limits: Mapping[str, int], pipe: BinaryIO
) -> dict[str, Any]:
    """Do a job, and return the last message: the end, or why the rest could not be done."""
    try:
        if job == READ:
            for item in reader_of(media_type).read(file):
                _send(pipe, item_to_json(item))
        else:
            with os.fdopen(limits["requests"], "r", encoding="utf-8") as requests:
                _look_again(job, file, json.load(requests), pipe)
    except BrokenPipeError:
        raise
    except RagError as error:
        return {"error": to_stored(error.message)}
    except MemoryError:
        return {
            "error": to_stored(
                _(
                    "Reading it takes more than {megabytes} MB of memory. Raise "
                    "EXTRACTION__MEMORY_MB or split the file."
                ).format(megabytes=limits["memory_bytes"] // 1024**2)
            )
        }
    except RecursionError:
        return {"error": to_stored(too_deep(RECURSION).message)}
    except Exception as error:  # noqa: BLE001 - a defect of a reader costs this file, no other
        return {"error": to_stored(damaged(media_type, error).message)}
    return {"end": True}


def _send(pipe: BinaryIO, message: Mapping[str, Any]) -> None:
    """Send a message as a line of JSON."""
    pipe.write(json.dumps(message).encode("ascii") + b"\n")
    pipe.flush()


def _look_again(job: str, file: BinaryIO, requests: Any, pipe: BinaryIO) -> None:
    """Send the text in boxes of a PDF file, or a picture of a page with boxes."""
    from rag_resources.documents.pdf_places import PdfFile

    with closing(PdfFile(file)) as pdf:
        if job == PICTURE:
            png = pdf.picture(requests["page"], [Box(*box) for box in requests["boxes"]])
            _send(pipe, {"png": base64.b64encode(png).decode()})
            return
        for page, box in requests:
            try:
                text: str | None = pdf.text_in(page, Box(*box))
            except InvalidSourceError:
                text = None
            _send(pipe, {"text": text})


def _limit_process(limits: Mapping[str, int]) -> None:
    sys.setrecursionlimit(RECURSION)
    for kind, value in (
        ("RLIMIT_AS", limits["memory_bytes"]),
        ("RLIMIT_CPU", limits["cpu_s"]),
        ("RLIMIT_FSIZE", _FILE_BYTES),
        ("RLIMIT_NOFILE", _OPEN_FILES),
        ("RLIMIT_CORE", 0),
    ):
        with suppress(ValueError, OSError, AttributeError):  # Not every system has every limit.
            number = getattr(resource, kind)
            _, hard = resource.getrlimit(number)
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (most, most))
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)


if __name__ == "__main__":
    main()
