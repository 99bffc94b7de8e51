"""Another process that announces itself as one of the product's programs."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ANNOUNCES = """
import sys
from pathlib import Path
from rag_resources.programs import announced
with announced(Path(sys.argv[1]), "rag serve", address="http://127.0.0.1:8000"):
    print("ready", flush=True)
    sys.stdin.read()
"""


@contextmanager
def running(home: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Another process that is announced, until its standard input is closed."""
    command = [sys.executable, "-c", ANNOUNCES, str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield process
