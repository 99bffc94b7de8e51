"""`make snapshots`: records the behaviour of the product, and compares it with what is stored.

The sample is indexed once, in `build/snapshots` (`SNAPSHOT_HOME`), and again when the schema is
another; delete that folder after a change to reading or indexing.
"""

import argparse
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.api_server import serving
from tests.snapshots import sample
from tests.snapshots.comparison import differences, store, stored, told
from tests.snapshots.rankings import ranking_differences, rankings
from tests.snapshots.surfaces import CHEAP

SURFACES = (*CHEAP, "rankings", "answers", "commands")


def recorded(surfaces: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield each surface and what it shows now."""
    for surface, show in CHEAP.items():
        if surface in surfaces:
            yield surface, show()
    if {"rankings", "answers", "commands"}.isdisjoint(surfaces):
        return
    sample.prepare()
    with _copy() as (folder, url):
        files = (folder / "files").as_uri()
        with serving(folder, url, FILES_URL=files) as server:
            if "rankings" in surfaces:
                yield "rankings", rankings(server.client)
            if "answers" in surfaces:
                yield "answers", sample.answers(server.client)
    if "commands" in surfaces:
        with _copy() as (folder, url):
            yield "commands", sample.commands(folder, url)


@contextmanager
def _copy() -> Iterator[tuple[Path, str]]:
    with TemporaryDirectory() as folder, sample.sample_copy() as url:
        yield Path(folder), url


def main() -> int:
    """Compare every surface, or store it anew."""
    parser = argparse.ArgumentParser(prog="make snapshots", description=__doc__)
    parser.add_argument("--update", action="store_true", help="store what is shown now")
    parser.add_argument("surfaces", nargs="*", metavar="SURFACE", help=", ".join(SURFACES))
    asked = parser.parse_args()
    changed = False
    for surface, now in recorded(asked.surfaces or SURFACES):
        compare = ranking_differences if surface == "rankings" else differences
        lines = list(compare(stored(surface), now))
        sys.stdout.write(told(surface, lines))
        sys.stdout.flush()
        changed |= bool(lines)
        if asked.update and lines:
            store(surface, now)
    return int(changed and not asked.update)


sys.exit(main())
